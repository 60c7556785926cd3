//! Captures of runs.

use std::fs::File;
use std::io;

use anabranch_sim::{Capture, Side};
use pyo3::FromPyObject;

/// A capture to write: a tuple in Python.
#[derive(FromPyObject)]
pub(crate) struct Pcap(String, Option<u64>, Option<String>, Option<u32>);

impl Pcap {
    /// The capture, which creates its file and owns it.
    pub(crate) fn into_capture(self) -> io::Result<Capture<'static>> {
        let Pcap(file, limit, at, snap_length) = self;
        let at: Option<&[Side]> = match at.as_deref() {
            Some("client") => Some(&[Side::Client]),
            Some("server") => Some(&[Side::Server]),
            Some(_) => Some(&[Side::Client, Side::Server]),
            None => None,
        };
        // Without a buffer: the capture holds its packets until it has many.
        Ok(Capture { out: Box::new(File::create(file)?), at, snap_length, limit })
    }
}
