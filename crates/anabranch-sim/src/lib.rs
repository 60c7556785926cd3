//! anabranch-sim

pub mod scenario;
