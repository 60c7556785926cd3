//! Switches of the kernel, below `/proc/sys`.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The file of a key, whose parts have slashes between them.
fn file(key: &str) -> PathBuf {
    Path::new("/proc/sys").join(key)
}

/// Returns `true` if the kernel has this key.
pub(super) fn exists(key: &str) -> bool {
    file(key).exists()
}

/// Returns `true` if a switch is on.
pub(super) fn is_on(key: &str) -> bool {
    fs::read_to_string(file(key)).is_ok_and(|value| value.trim() == "1")
}

/// Set a value.
///
/// # Errors
/// If the kernel refuses it. The message names the file.
pub(super) fn set(key: &str, value: &str) -> io::Result<()> {
    let file = file(key);
    fs::write(&file, value)
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", file.display())))
}
