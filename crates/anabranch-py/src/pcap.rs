//! Captures of runs.

use std::fs::File;
use std::io::{self, BufWriter, Write};

use anabranch_sim::{Capture, Side};
use pyo3::FromPyObject;

/// A capture to write: a tuple in Python.
#[derive(FromPyObject)]
pub(crate) struct Pcap(String, Option<u64>, Option<String>, Option<u32>);

/// Bytes that wait to be written.
const BUFFER: usize = 1 << 18;

impl Pcap {
    /// Create the file.
    pub(crate) fn create(&self) -> io::Result<BufWriter<File>> {
        Ok(BufWriter::with_capacity(BUFFER, File::create(&self.0)?))
    }

    /// The capture, written to `file`.
    pub(crate) fn to<'a>(&self, file: &'a mut BufWriter<File>) -> Capture<'a> {
        self.to_writer(file)
    }

    /// The capture, which creates its file and owns it.
    #[cfg(target_os = "linux")]
    pub(crate) fn into_capture(self) -> io::Result<Capture<'static>> {
        Ok(self.to_writer(self.create()?))
    }

    fn to_writer<'a>(&self, file: impl Write + Send + 'a) -> Capture<'a> {
        let Pcap(_, limit, at, snap_length) = self;
        let at: Option<&[Side]> = match at.as_deref() {
            Some("client") => Some(&[Side::Client]),
            Some("server") => Some(&[Side::Server]),
            Some(_) => Some(&[Side::Client, Side::Server]),
            None => None,
        };
        Capture { out: Box::new(file), at, snap_length: *snap_length, limit: *limit }
    }
}
