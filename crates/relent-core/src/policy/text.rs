//! stub
/// stub
pub struct PolicyText;
