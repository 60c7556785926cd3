//! Two hosts in lockstep, or one host against a peer whose segments the test writes. The tests
//! share one binary, because every binary links the whole engine. Tests that count allocations have
//! their own binaries.

#[path = "../pair/mod.rs"]
mod pair;

mod activities;
mod announcements;
mod assignment;
mod bad_scheduler;
mod checksum;
mod data_level;
mod dss;
mod ecn;
mod endpoint;
mod fallback;
mod fast_open;
mod fastclose;
mod faults;
mod floods;
mod hostile;
mod linux_sockets;
mod liveness;
mod mp_capable;
mod mp_fail;
mod mp_join;
mod path_managers;
mod path_regressions;
mod recovery;
mod regressions;
mod requirements;
mod segment_arrives;
mod sharing;
