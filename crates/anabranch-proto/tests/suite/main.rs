//! Two hosts in lockstep, or one against a peer that a test writes out. One binary, since each
//! would link the whole engine; what counts allocations is beside it.

#[path = "../pair/mod.rs"]
mod pair;

mod announcements;
mod assignment;
mod bad_scheduler;
mod checksum;
mod data_level;
mod dss;
mod ecn;
mod endpoint;
mod fallback;
mod fastclose;
mod faults;
mod floods;
mod hostile;
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
