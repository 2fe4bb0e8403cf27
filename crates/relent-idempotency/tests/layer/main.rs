//! The layer, request by request, on virtual time.

mod cancel;
mod failures;
mod keys;
mod leases;
mod life;
mod replay;
mod sizes;
mod stores;
mod surroundings;
mod together;
mod world;
