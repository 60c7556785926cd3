//! Several captures merged into one, in the order of time.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};

use anabranch_wire::{CapturedSegment, Instant};

use crate::capture::{self, Damage, Frame, Reader};
use crate::error::AnalyseError;

/// A capture to analyse. The analyser reads it twice.
#[derive(Debug)]
pub struct Input<'a> {
    name: String,
    content: Content<'a>,
}

#[derive(Debug)]
enum Content<'a> {
    File(PathBuf),
    Bytes(&'a [u8]),
}

impl<'a> Input<'a> {
    /// A capture in a file.
    pub fn file(path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        Input { name: path.display().to_string(), content: Content::File(path.into()) }
    }

    /// A capture in memory. `name` is its name in messages.
    pub fn bytes(name: impl Into<String>, bytes: &'a [u8]) -> Self {
        Input { name: name.into(), content: Content::Bytes(bytes) }
    }

    /// The capture's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn open(&self) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match &self.content {
            Content::File(path) => Box::new(BufReader::with_capacity(1 << 18, File::open(path)?)),
            Content::Bytes(bytes) => Box::new(*bytes),
        })
    }

    /// Size in bytes, to report progress.
    pub(crate) fn bytes_len(&self) -> u64 {
        match &self.content {
            Content::File(path) => path.metadata().map_or(0, |about| about.len()),
            Content::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// A TCP segment of a capture, and its position.
pub(crate) struct Sighting<'a> {
    pub(crate) file: u32,
    pub(crate) number: u64,
    pub(crate) time: Instant,
    /// Number of the epoch. A section whose clock restarts begins a new epoch.
    pub(crate) epoch: u32,
    pub(crate) place: u32,
    pub(crate) segment: CapturedSegment<'a>,
}

/// The contents of a file in numbers.
#[derive(Debug, Default)]
pub(crate) struct FileReport {
    pub(crate) packets: u64,
    /// Packets without a TCP segment, or with truncated headers.
    pub(crate) other: u64,
    /// The first unknown link type, and the number of packets with an unknown link type.
    pub(crate) unknown_link: Option<(u16, u64)>,
    pub(crate) damage: Option<Damage>,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
}

/// The packets of all captures, merged.
pub(crate) struct Packets<'a> {
    sources: Vec<Source<'a>>,
    places: HashMap<(u32, u32, u32, u32), u32>,
    place_names: Vec<String>,
}

struct Source<'a> {
    reader: Reader<Box<dyn Read + 'a>>,
    waiting: BinaryHeap<Waiting>,
    spare: Vec<Frame>,
    ended: bool,
    section: u32,
    epoch: u32,
    report: FileReport,
}

/// Ordered so that the earliest packet is the greatest.
struct Waiting(Frame);

impl<'a> Packets<'a> {
    pub(crate) fn open(inputs: &[Input<'a>]) -> Result<Self, AnalyseError> {
        let sources = inputs.iter().map(|input| {
            let unreadable = |error| AnalyseError::Unreadable { file: input.name.clone(), error };
            let reader = Reader::new(input.open().map_err(unreadable)?);
            let wrong = |damage| AnalyseError::NoCapture { file: input.name.clone(), damage };
            let mut source = Source {
                reader: reader.map_err(wrong)?,
                waiting: BinaryHeap::new(),
                spare: Vec::new(),
                ended: false,
                section: 0,
                epoch: 0,
                report: FileReport::default(),
            };
            source.fill();
            Ok(source)
        });
        let sources = sources.collect::<Result<_, _>>()?;
        Ok(Packets { sources, places: HashMap::new(), place_names: Vec::new() })
    }

    /// Pass every TCP segment to `take`, in the order of time. `go_on` is called repeatedly with the
    /// number of bytes read, and returns whether to continue.
    pub(crate) fn for_each(
        &mut self,
        mut take: impl FnMut(Sighting<'_>),
        mut go_on: impl FnMut(u64) -> bool,
    ) -> Result<(), AnalyseError> {
        let mut count = 0_u64;
        while let Some((file, frame)) = self.next() {
            count += 1;
            if count.is_multiple_of(ASK_EVERY) && !go_on(self.offset()) {
                return Err(AnalyseError::Interrupted);
            }
            if let Some(sighting) = self.sight(file, &frame) {
                take(sighting);
            }
            self.sources[file].spare.push(frame);
        }
        Ok(())
    }

    /// The earliest waiting packet, and the index of its file.
    fn next(&mut self) -> Option<(usize, Frame)> {
        let heads = self.sources.iter().enumerate();
        let times = heads
            .filter_map(|(file, source)| source.waiting.peek().map(|head| (head.0.time, file)));
        let (_, file) = times.min()?;
        let source = &mut self.sources[file];
        let Waiting(frame) = source.waiting.pop()?;
        source.fill();
        Some((file, frame))
    }

    fn sight<'f>(&mut self, file: usize, frame: &'f Frame) -> Option<Sighting<'f>> {
        let source = &mut self.sources[file];
        source.enter(frame);
        let report = &mut source.report;
        let carried = match capture::unwrap(frame.link_type, &frame.bytes) {
            Ok(carried) => carried,
            Err(link_type) => {
                report.unknown_link.get_or_insert((link_type, 0)).1 += 1;
                return None;
            }
        };
        let segment =
            carried.as_ref().and_then(|carried| CapturedSegment::parse(carried.packet).ok());
        let (Some(carried), Some(segment)) = (carried, segment) else {
            report.other += 1;
            return None;
        };
        let epoch = source.epoch;
        let place = self.place(file as u32, frame, carried.place);
        let Frame { number, time, .. } = *frame;
        Some(Sighting { file: file as u32, number, time, epoch, place, segment })
    }

    /// The number of the place where a packet was captured.
    fn place(&mut self, file: u32, frame: &Frame, within: u32) -> u32 {
        let key = (file, frame.section, frame.interface, within);
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        if self.places.len() >= MOST_PLACES {
            return 0;
        }
        let name = self.sources[file as usize].reader.interface_name(frame.interface);
        let mut name = name.map_or_else(|| format!("interface {}", frame.interface), str::to_owned);
        if self.sources.len() > 1 {
            name = format!("file {}, {name}", file + 1);
        }
        let place = self.places.len() as u32;
        self.places.insert(key, place);
        self.place_names.push(name);
        place
    }

    fn offset(&self) -> u64 {
        self.sources.iter().map(|source| source.reader.offset()).sum()
    }

    pub(crate) fn place_names(&self) -> &[String] {
        &self.place_names
    }

    pub(crate) fn into_reports(self) -> Vec<FileReport> {
        self.sources.into_iter().map(|source| source.report).collect()
    }
}

impl Source<'_> {
    /// Read until as many packets wait as can be out of order.
    fn fill(&mut self) {
        let wanted = if self.reader.has_several_interfaces() { LOOK_AHEAD } else { 1 };
        while !self.ended && self.waiting.len() < wanted {
            let mut frame = self.spare.pop().unwrap_or_default();
            match self.reader.next(&mut frame) {
                Ok(true) => self.waiting.push(Waiting(frame)),
                Ok(false) => self.ended = true,
                Err(damage) => {
                    self.ended = true;
                    self.report.damage = Some(damage);
                }
            }
        }
    }

    /// Take a packet out of the queue.
    fn enter(&mut self, frame: &Frame) {
        let report = &mut self.report;
        report.packets += 1;
        if frame.section != self.section && report.last.is_some_and(|last| frame.time < last) {
            self.epoch += 1;
        }
        self.section = frame.section;
        report.first = Some(report.first.map_or(frame.time, |first| first.min(frame.time)));
        report.last = Some(frame.time);
    }
}

impl Waiting {
    fn key(&self) -> (u32, Instant, u64) {
        (self.0.section, self.0.time, self.0.number)
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Waiting {}

/// Packets of one file that are sorted. Capture tools write packets of several interfaces in batches.
const LOOK_AHEAD: usize = 512;

/// Number of packets between two calls of `go_on`.
const ASK_EVERY: u64 = 8_192;

/// Largest number of places that are distinguished.
const MOST_PLACES: usize = 65_536;
