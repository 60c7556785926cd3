//! The journal records every run as soon as it is finished.
//!
//! The journal is a file of records. Each record is appended by one write, protected by a SHA-256, and
//! identified by the key of its run. If a batch ends early, at most the record being written is lost.
//! A damaged record costs that one run. Bytes of a record:
//!
//! ```text
//! magic (8)  length of the body (8, little-endian)  SHA-256 of the body (32)  body
//! ```
//!
//! The body is the key (32 bytes), and then the bytes of a [`RunRecord`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use crate::record::RunRecord;

/// SHA-256 of everything that the record of a run depends on.
pub type RunKey = [u8; 32];

const MAGIC: &[u8; 8] = b"\x93ABRUN\r\n";
const HEAD: usize = 48;
const KEY: usize = size_of::<RunKey>();

/// The body of a record in the file.
#[derive(Clone, Copy, Debug)]
struct RecordSpan {
    offset: u64,
    length: u64,
}

/// The finished runs of a results folder. Only one process may write to the file.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    damage: Option<Damage>,
    records: Mutex<Records>,
}

/// Damage that was found when the journal was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Number of bytes outside intact records.
    pub lost: u64,
    /// Number of intact runs.
    pub intact: usize,
}

#[derive(Debug)]
struct Records {
    file: File,
    end: u64,
    places: BTreeMap<RunKey, RecordSpan>,
    /// Keys that were looked up or added since the journal was opened.
    used: BTreeSet<RunKey>,
}

impl Journal {
    /// Open the journal, or create it. The file is rewritten if it is damaged.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = open(path)?;
        let (places, lost, end) = scan(&mut file)?;
        let damage = (lost > 0).then_some(Damage { lost, intact: places.len() });
        let used = BTreeSet::new();
        let records = Mutex::new(Records { file, end, places, used });
        let journal = Journal { path: path.to_owned(), damage, records };
        if damage.is_some() {
            let all = journal.keys().into_iter().collect();
            journal.rewrite(&mut journal.records(), &all)?;
        }
        Ok(journal)
    }

    /// Damage that was found when the journal was opened.
    pub fn damage(&self) -> Option<Damage> {
        self.damage
    }

    /// Keys of the finished runs.
    pub fn keys(&self) -> Vec<RunKey> {
        self.records().places.keys().copied().collect()
    }

    /// Returns `true` if the run with this key is finished. If so, it counts as used.
    pub fn contains(&self, key: &RunKey) -> bool {
        let mut records = self.records();
        let is_finished = records.places.contains_key(key);
        if is_finished {
            records.used.insert(*key);
        }
        is_finished
    }

    /// The record of the run with this key, or `None` if it is not finished.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn find(&self, key: &RunKey) -> io::Result<Option<RunRecord>> {
        if !self.contains(key) {
            return Ok(None);
        }
        let mut records = self.records();
        let RecordSpan { offset, length } = records.places[key];
        let of_record = RecordSpan { offset: offset + KEY as u64, length: length - KEY as u64 };
        read(&mut records.file, of_record).map(|bytes| Some(RunRecord::from_bytes(bytes)))
    }

    /// Append the record of a finished run. Any thread may call this.
    ///
    /// # Errors
    /// If the file cannot be written. It then has no part of this record.
    pub fn add(&self, key: &RunKey, record: &RunRecord) -> io::Result<()> {
        // Outside the lock: threads only wait for each other while one writes.
        let bytes = encoded(key, record.as_bytes());
        let mut records = self.records();
        records.append(*key, &bytes)?;
        records.used.insert(*key);
        Ok(())
    }

    /// Drop the runs that were neither looked up nor added since the journal was opened.
    ///
    /// # Errors
    /// If the file cannot be written. The old one remains then.
    pub fn keep_only_used(&self) -> io::Result<()> {
        let mut records = self.records();
        if records.used.len() == records.places.len() {
            return Ok(());
        }
        let used = records.used.clone();
        self.rewrite(&mut records, &used)
    }

    /// Flush the journal to the disk.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn sync(&self) -> io::Result<()> {
        self.records().file.sync_all()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        // A panic in another thread leaves no half-changed records.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Write the records with these keys, in their order in the file, to a new file that replaces the
    /// old one atomically.
    fn rewrite(&self, records: &mut Records, keys: &BTreeSet<RunKey>) -> io::Result<()> {
        let temporary = self.path.with_extension("new");
        match std::fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let kept = records.places.iter().filter(|(key, _)| keys.contains(*key));
        let mut kept: Vec<_> = kept.map(|(key, place)| (*key, *place)).collect();
        kept.sort_unstable_by_key(|(_, place)| place.offset);
        let new = self.copied(records, kept, &temporary).inspect_err(|_| {
            // The disk may be full. The first error is the one to report.
            let _ = std::fs::remove_file(&temporary);
        })?;
        *records = new;
        Ok(())
    }

    /// Copy records to a temporary file, which then replaces the journal's.
    fn copied(
        &self,
        records: &mut Records,
        kept: Vec<(RunKey, RecordSpan)>,
        temporary: &Path,
    ) -> io::Result<Records> {
        let (file, used) = (open(temporary)?, records.used.clone());
        let mut new = Records { file, end: 0, places: BTreeMap::new(), used };
        for (key, place) in kept {
            let body = read(&mut records.file, place)?;
            new.append(key, &encoded(&key, &body[KEY..]))?;
        }
        new.file.sync_all()?;
        std::fs::rename(temporary, &self.path)?;
        Ok(new)
    }
}

impl Records {
    fn append(&mut self, key: RunKey, bytes: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(bytes) {
            // A disk that is filling up may have taken a part, which would be reported as damage.
            // The first error is the one to report.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        let (offset, length) = (self.end + HEAD as u64, (bytes.len() - HEAD) as u64);
        self.places.insert(key, RecordSpan { offset, length });
        self.end += bytes.len() as u64;
        Ok(())
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).append(true).create(true).open(path)
}

fn encoded(key: &RunKey, record: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD + KEY + record.len());
    bytes.extend(MAGIC);
    bytes.extend(((KEY + record.len()) as u64).to_le_bytes());
    bytes.extend([0; 32]);
    bytes.extend(key);
    bytes.extend(record);
    let checksum = Sha256::digest(&bytes[HEAD..]);
    bytes[HEAD - 32..HEAD].copy_from_slice(&checksum);
    bytes
}

/// The intact records by key, the number of bytes outside them, and the end of the file.
fn scan(file: &mut File) -> io::Result<(BTreeMap<RunKey, RecordSpan>, u64, u64)> {
    let end = file.seek(SeekFrom::End(0))?;
    let (mut places, mut lost, mut offset) = (BTreeMap::new(), 0, 0);
    while offset < end {
        if let Some((key, place)) = record_at(file, offset, end)? {
            places.insert(key, place);
            offset = place.offset + place.length;
        } else {
            let next = next_magic(file, offset + 1, end)?;
            lost += next - offset;
            offset = next;
        }
    }
    Ok((places, lost, end))
}

/// The intact record that begins at `offset`, or `None`.
fn record_at(file: &mut File, offset: u64, end: u64) -> io::Result<Option<(RunKey, RecordSpan)>> {
    let body = offset + HEAD as u64;
    if body + KEY as u64 > end {
        return Ok(None);
    }
    let head = read(file, RecordSpan { offset, length: HEAD as u64 })?;
    let (magic, rest) = head.split_at(MAGIC.len());
    let (length, checksum) = rest.split_at(8);
    let length = u64::from_le_bytes(length.try_into().expect("eight bytes"));
    if magic != MAGIC || length < KEY as u64 || length > end - body {
        return Ok(None);
    }
    let place = RecordSpan { offset: body, length };
    let bytes = read(file, place)?;
    let key: RunKey = bytes[..KEY].try_into().expect("the length of a key");
    Ok((Sha256::digest(&bytes)[..] == *checksum).then_some((key, place)))
}

/// Offset at which the next record may begin, or the end of the file.
fn next_magic(file: &mut File, mut offset: u64, end: u64) -> io::Result<u64> {
    const CHUNK: u64 = 1 << 20;
    while offset < end {
        let length = (CHUNK + MAGIC.len() as u64).min(end - offset);
        let bytes = read(file, RecordSpan { offset, length })?;
        if let Some(found) = bytes.windows(MAGIC.len()).position(|bytes| bytes == MAGIC) {
            return Ok(offset + found as u64);
        }
        offset += CHUNK;
    }
    Ok(end)
}

fn read(file: &mut File, place: RecordSpan) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; place.length as usize];
    file.seek(SeekFrom::Start(place.offset))?;
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}
