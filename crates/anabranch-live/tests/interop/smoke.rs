//! The few cases that `make test` runs. They cover each role, each kind of case and each feature of
//! the protocol. `make interop` runs all cases.

use super::cases::Case;

const NAMES: [&str; 16] = [
    // Both hosts open connections, join and send.
    "upload, engine to kernel",
    "download, kernel to engine",
    "requests and responses, kernel to engine",
    "upload over IPv6, kernel to engine",
    "download with ECN, engine to kernel",
    "download with losses, engine to kernel",
    "upload, first path breaks off, engine to kernel",
    // TCP from the start, TCP from the first data on, or a subflow that fails.
    "plain TCP, kernel to engine",
    "upload, options stripped, kernel to engine",
    "upload, DSS stripped from data, engine to kernel",
    "download, payload changed on one path, kernel to engine",
    // Control options.
    "ADD_ADDR, kernel to engine",
    "REMOVE_ADDR and back, engine to kernel",
    "MP_PRIO, kernel to engine",
    "receiving server closes first, engine to kernel",
    "FASTCLOSE by the client, engine to kernel",
];

/// Returns `true` if this case is one of them.
pub(crate) fn contains(case: &Case) -> bool {
    NAMES.contains(&case.name.as_str())
}

/// Check that each name belongs to a case.
pub(crate) fn check(cases: &[Case]) {
    for name in NAMES {
        assert!(cases.iter().any(|case| case.name == name), "there is no case {name:?}");
    }
}
