//! A record on disk of what an instance has changed, so that the next start can remove it even if the
//! process was killed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use thiserror::Error;
use tracing::warn;

use super::Setup;

/// Folder of the records, unless systemd names another one.
const FOLDER: &str = "/run/anabranch-proxy";

/// Reason why an instance cannot start.
#[derive(Debug, Error)]
pub(crate) enum RecordError {
    /// Another process has the same name.
    #[error("{0}: an instance with this name is running; choose another one with --name")]
    Running(PathBuf),
    /// The file cannot be used.
    #[error("{0}: {1}")]
    File(PathBuf, io::Error),
}

/// The record of an instance, which this process holds as long as it lives.
#[derive(Debug)]
pub(crate) struct InstanceRecord {
    file: File,
    path: PathBuf,
    /// The host-wide lock, held while this process plans, makes or removes its network.
    changing: Option<File>,
}

impl InstanceRecord {
    /// Open the record of the instance `name` in this network namespace. Also returns what an earlier
    /// process has left behind.
    ///
    /// # Errors
    /// If an instance with this name is running, or the file cannot be used.
    pub(crate) fn open(name: &str) -> Result<(Self, Option<Setup>), RecordError> {
        let folder = folder();
        let path = folder.join(format!("{name}-{}.json", namespace().unwrap_or(0)));
        let named = |error| RecordError::File(path.clone(), error);
        make(&folder).map_err(named)?;
        let changing = Some(lock(&folder).map_err(named)?);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(named)?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(RecordError::Running(path));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(named)?;
        let left = match serde_json::from_str(&text) {
            Ok(left) => Some(left),
            Err(error) if !text.is_empty() => {
                warn!(record = %path.display(), %error, "damaged: what it names is not removed");
                None
            }
            Err(_) => None,
        };
        Ok((InstanceRecord { file, path, changing }, left))
    }

    /// Write down what this process is going to change.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write(&mut self, setup: &Setup) -> Result<(), RecordError> {
        let text = serde_json::to_string(setup).expect("it consists of texts");
        self.replace(&text).map_err(|error| RecordError::File(self.path.clone(), error))
    }

    /// Release the host-wide lock, so that other instances can change their networks.
    pub(crate) fn let_others_change(&mut self) {
        self.changing = None;
    }

    /// Note that the leftovers of an earlier process were removed.
    pub(crate) fn empty(&mut self) {
        let _ = self.replace("");
    }

    /// Remove the network of this process.
    pub(crate) fn remove(mut self, name: &str, network: &Setup) {
        self.changing = lock(&folder()).ok();
        network.remove(&others(name));
        self.empty();
        let _ = fs::remove_file(&self.path);
    }

    fn replace(&mut self, text: &str) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_data()
    }
}

/// The networks of all instances in this network namespace with other names. Records that this process
/// may not read are left out.
pub(crate) fn others(name: &str) -> Vec<Setup> {
    let Ok(entries) = fs::read_dir(folder()) else { return Vec::new() };
    let here = format!("-{}.json", namespace().unwrap_or(0));
    let is_other = |file: &str| file.strip_suffix(&here).is_some_and(|other| other != name);
    let files = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(is_other));
    let texts = files.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.filter_map(|text| serde_json::from_str(&text).ok()).collect()
}

fn folder() -> PathBuf {
    std::env::var_os("RUNTIME_DIRECTORY").map_or(FOLDER.into(), PathBuf::from)
}

/// Wait for the lock that one instance at a time holds while it changes its network, and take it.
fn lock(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    let file =
        options.write(true).create(true).truncate(false).mode(0o600).open(folder.join("lock"))?;
    flock(&file, FlockOperation::LockExclusive)?;
    Ok(file)
}

fn make(folder: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// The number of this process's network namespace.
fn namespace() -> io::Result<u64> {
    Ok(fs::metadata("/proc/self/ns/net")?.ino())
}
