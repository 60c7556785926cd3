//! Several captures merged into one, in the order of time.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use anabranch_wire::{CapturedSegment, Instant};

use crate::capture::{CaptureReader, Damage, Decoder, Frame, Unread, decompressed};
use crate::error::AnalyseError;

/// A capture to analyse, which may be compressed with gzip or Zstandard. The analyser reads it twice.
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

    /// A capture in a file that has another name in messages, such as a copy of standard input.
    pub fn named(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        Input { name: name.into(), content: Content::File(path.into()) }
    }

    /// A capture in memory. `name` is its name in messages.
    pub fn bytes(name: impl Into<String>, bytes: &'a [u8]) -> Self {
        Input { name: name.into(), content: Content::Bytes(bytes) }
    }

    /// The capture's name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Open the capture. `read` counts the bytes that are read before decompression.
    fn open(&self, read: &Rc<Cell<u64>>) -> io::Result<Box<dyn Read + 'a>> {
        let read = Rc::clone(read);
        match &self.content {
            Content::File(path) => decompressed(Counted { inner: File::open(path)?, read }),
            Content::Bytes(bytes) => decompressed(Counted { inner: *bytes, read }),
        }
    }

    /// Size in bytes, to report progress.
    pub(crate) fn bytes_len(&self) -> u64 {
        match &self.content {
            Content::File(path) => path.metadata().map_or(0, |about| about.len()),
            Content::Bytes(bytes) => bytes.len() as u64,
        }
    }
}

/// Counts the bytes that are read.
struct Counted<R> {
    inner: R,
    read: Rc<Cell<u64>>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        self.read.set(self.read.get() + read as u64);
        Ok(read)
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
    /// Identification of the IPv4 packet.
    pub(crate) ip_id: Option<u16>,
    pub(crate) segment: CapturedSegment<'a>,
}

/// The contents of a file in numbers.
#[derive(Debug, Default)]
pub(crate) struct FileReport {
    pub(crate) packets: u64,
    /// Packets without a TCP segment.
    pub(crate) other: u64,
    /// Packets that could not be read: how many, and the number of the first one.
    pub(crate) unread: BTreeMap<Unread, (u64, u64)>,
    pub(crate) damage: Option<Damage>,
    pub(crate) first: Option<Instant>,
    pub(crate) last: Option<Instant>,
}

/// The packets of all captures, merged.
pub(crate) struct Packets<'a> {
    sources: Vec<CaptureSource<'a>>,
    places: Places,
}

/// The places where packets were captured: file, section, interface, and the place that the link
/// layer names.
#[derive(Default)]
struct Places {
    numbers: HashMap<(u32, u32, u32, u32), u32>,
    names: Vec<String>,
    of_several_files: bool,
}

struct CaptureSource<'a> {
    reader: CaptureReader<Box<dyn Read + 'a>>,
    decoder: Decoder,
    /// Bytes read before decompression.
    read: Rc<Cell<u64>>,
    /// The packets that were read ahead, in their order.
    waiting: VecDeque<Frame>,
    spare: Vec<Frame>,
    ended: bool,
    /// The latest time that was read since the clock last went far back, and how often it did.
    latest: Instant,
    stretch: u32,
    section: u32,
    epoch: u32,
    report: FileReport,
}

impl<'a> Packets<'a> {
    pub(crate) fn open(inputs: &[Input<'a>]) -> Result<Self, AnalyseError> {
        let sources = inputs.iter().map(|input| {
            let unreadable = |error| AnalyseError::Unreadable { file: input.name.clone(), error };
            let read = Rc::new(Cell::new(0));
            let reader = CaptureReader::new(input.open(&read).map_err(unreadable)?);
            let wrong = |damage| AnalyseError::NoCapture { file: input.name.clone(), damage };
            let mut source = CaptureSource {
                reader: reader.map_err(wrong)?,
                decoder: Decoder::default(),
                read,
                waiting: VecDeque::new(),
                spare: Vec::new(),
                ended: false,
                latest: Instant::ZERO,
                stretch: 0,
                section: 0,
                epoch: 0,
                report: FileReport::default(),
            };
            source.fill();
            Ok(source)
        });
        let sources = sources.collect::<Result<_, _>>()?;
        let places = Places { of_several_files: inputs.len() > 1, ..Places::default() };
        Ok(Packets { sources, places })
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
            self.sight(file, &frame, &mut take);
            self.sources[file].spare.push(frame);
        }
        Ok(())
    }

    /// The earliest waiting packet, and the index of its file.
    fn next(&mut self) -> Option<(usize, Frame)> {
        let heads = self.sources.iter().enumerate();
        let times =
            heads.filter_map(|(file, source)| source.waiting.front().map(|head| (head.time, file)));
        let (_, file) = times.min()?;
        let source = &mut self.sources[file];
        let frame = source.waiting.pop_front()?;
        source.fill();
        Some((file, frame))
    }

    fn sight(&mut self, file: usize, frame: &Frame, take: &mut impl FnMut(Sighting<'_>)) {
        let Packets { sources, places, .. } = self;
        let source = &mut sources[file];
        source.enter(frame);
        let CaptureSource { decoder, report, reader, epoch, .. } = source;
        report.reassembled(decoder.completed());
        let carried = match decoder.decode(frame) {
            Ok(carried) => carried,
            Err(reason) => return report.leave_out(reason, frame.number),
        };
        let place = places.number(file as u32, frame, carried.place, reader);
        let Frame { number, time, .. } = *frame;
        let (ip_id, segment) = (carried.ip_id, carried.segment);
        take(Sighting { file: file as u32, number, time, epoch: *epoch, place, ip_id, segment });
    }

    fn offset(&self) -> u64 {
        self.sources.iter().map(|source| source.read.get()).sum()
    }

    pub(crate) fn place_names(&self) -> &[String] {
        &self.places.names
    }

    pub(crate) fn into_reports(self) -> Vec<FileReport> {
        let reports = self.sources.into_iter().map(|mut source| {
            source.report.reassembled(source.decoder.completed());
            source.report
        });
        reports.collect()
    }
}

impl Places {
    /// The number of the place where a packet was captured.
    fn number<R: Read>(
        &mut self,
        file: u32,
        frame: &Frame,
        within: u32,
        reader: &CaptureReader<R>,
    ) -> u32 {
        let key = (file, frame.section, frame.interface, within);
        if let Some(place) = self.numbers.get(&key) {
            return *place;
        }
        if self.numbers.len() >= MOST_PLACES {
            return 0;
        }
        let name = reader.interface_name(frame.interface);
        let mut name = name.map_or_else(|| format!("interface {}", frame.interface), str::to_owned);
        if self.of_several_files {
            name = format!("file {}, {name}", file + 1);
        }
        let place = self.numbers.len() as u32;
        self.numbers.insert(key, place);
        self.names.push(name);
        place
    }
}

impl FileReport {
    /// Count a packet from which no TCP segment was read.
    fn leave_out(&mut self, reason: Unread, number: u64) {
        match reason {
            Unread::NotTcp => self.other += 1,
            reason => self.unread.entry(reason).or_insert((0, number)).0 += 1,
        }
    }

    /// Uncount fragments that belong to a packet which is now complete.
    fn reassembled(&mut self, fragments: u64) {
        if fragments > 0
            && let Some((count, _)) = self.unread.get_mut(&Unread::Fragment)
        {
            *count -= fragments.min(*count);
            if *count == 0 {
                self.unread.remove(&Unread::Fragment);
            }
        }
    }
}

impl CaptureSource<'_> {
    /// Read until as many packets wait as can be out of order.
    fn fill(&mut self) {
        while !self.ended && self.waiting.len() < LOOK_AHEAD {
            let mut frame = self.spare.pop().unwrap_or_default();
            match self.reader.next(&mut frame) {
                Ok(true) => {
                    self.number_stretch(&mut frame);
                    self.sort_in(frame);
                }
                Ok(false) => self.ended = true,
                Err(damage) => {
                    self.ended = true;
                    self.report.damage = Some(damage);
                }
            }
        }
    }

    /// Add a packet to those that wait. Nearly all packets are the latest so far.
    fn sort_in(&mut self, frame: Frame) {
        let place = match self.waiting.back() {
            Some(last) if order(&frame) < order(last) => {
                self.waiting.partition_point(|other| order(other) < order(&frame))
            }
            _ => self.waiting.len(),
        };
        self.waiting.insert(place, frame);
    }

    /// A time far before the previous ones means that the clock was set, or that files were joined.
    /// Packets are not moved across such a step.
    fn number_stretch(&mut self, frame: &mut Frame) {
        if self.latest.as_nanos().saturating_sub(frame.time.as_nanos()) > FARTHEST_BACK {
            self.stretch += 1;
            self.latest = frame.time;
        }
        self.latest = self.latest.max(frame.time);
        frame.stretch = self.stretch;
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

/// The order of a file's packets.
fn order(frame: &Frame) -> (u32, u32, Instant, u64) {
    (frame.section, frame.stretch, frame.time, frame.number)
}

/// Packets of one file that are sorted. Capture tools write packets of several interfaces or queues in
/// batches.
const LOOK_AHEAD: usize = 512;

/// Packets of one capture are out of order by less than this time in nanoseconds.
const FARTHEST_BACK: u64 = 10_000_000_000;

/// Number of packets between two calls of `go_on`.
const ASK_EVERY: u64 = 8_192;

/// Largest number of places that are distinguished.
const MOST_PLACES: usize = 65_536;
