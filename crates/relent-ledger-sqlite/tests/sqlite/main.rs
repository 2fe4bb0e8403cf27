//! What is SQLite's own: files, owners, full disks, spoiled rows, and a check that finds every fault.

mod audit;
mod claim;
mod crash;
mod full;
mod group;
mod model;
mod open;
mod spoiled;

#[path = "../common/mod.rs"]
mod common;
