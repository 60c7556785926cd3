//! Privileges that the two processes keep, and raising the limit on open files.

use std::io;

use rustix::process::{Gid, Resource, Rlimit, Uid, getrlimit, setrlimit};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// Capabilities for set-up and take-down: to change the network, to write captures into a user's folder,
/// and to start and end the other process, which runs as another user.
const OF_SETUP: CapabilitySet = CapabilitySet::NET_ADMIN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETPCAP);

/// Give up all privileges but those of set-up and take-down, also for the programs that this process
/// starts. Call this before there are other threads.
pub(crate) fn keep_those_of_setup() -> io::Result<()> {
    // A kernel may lack the newest ones.
    for capability in CapabilitySet::all().difference(OF_SETUP).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    let CapabilitySets { effective, permitted, inheritable } = capabilities(None)?;
    let [effective, permitted, inheritable] =
        [effective, permitted, inheritable].map(|set| set & OF_SETUP);
    Ok(set_capabilities(None, CapabilitySets { effective, permitted, inheritable })?)
}

/// Become this user and group, and give up all privileges, also those that a program with set-user-ID
/// would bring. Call this before there are other threads.
pub(crate) fn give_up(owner: Option<(u32, u32)>) -> io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    set_no_new_privs(true)?;
    // A kernel may lack the newest ones. A process without CAP_SETPCAP has no use for the others.
    for capability in CapabilitySet::all().iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
    clear_ambient_capability_set()?;
    if let Some((user, group)) = owner {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        set_thread_groups(&[])?;
        set_thread_res_gid(group, group, group)?;
        set_thread_res_uid(user, user, user)?;
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}
