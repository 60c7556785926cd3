//! Compressed captures, decompressed while they are read.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

/// A reader of the contents of `file`, which may be compressed with gzip (RFC 1952) or Zstandard (RFC
/// 8878). Their magic numbers decide.
pub(crate) fn decompressed<'a>(file: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut file = BufReader::with_capacity(BUFFER, file);
    Ok(match file.fill_buf()? {
        bytes if is_gzip(bytes) => {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
        }
        bytes if is_zstandard(bytes) => Box::new(BufReader::with_capacity(
            BUFFER,
            Frames { state: Some(FrameState::Between(file)) },
        )),
        _ => Box::new(file),
    })
}

/// Returns `true` if a file that begins with `bytes` is read decompressed.
pub(super) fn is_compressed(bytes: &[u8]) -> bool {
    is_gzip(bytes) || is_zstandard(bytes)
}

/// Returns `true` if a gzip file begins here. RFC 1952.
fn is_gzip(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1f, 0x8b])
}

/// Returns `true` if a Zstandard frame begins here, or a frame that decoders skip. RFC 8878.
fn is_zstandard(bytes: &[u8]) -> bool {
    match bytes {
        [0x28, 0xb5, 0x2f, 0xfd, ..] => true,
        [first, 0x2a, 0x4d, 0x18, ..] => first & 0xf0 == 0x50,
        _ => false,
    }
}

/// The frames of a Zstandard file, one after another.
struct Frames<R: BufRead> {
    /// `None` after an error.
    state: Option<FrameState<R>>,
}

enum FrameState<R: BufRead> {
    Between(R),
    Within(Box<StreamingDecoder<R, FrameDecoder>>),
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.state.take() {
                None => return Err(io::Error::other("reading went on after an error")),
                Some(FrameState::Between(mut file)) => {
                    if file.fill_buf()?.is_empty() {
                        self.state = Some(FrameState::Between(file));
                        return Ok(0);
                    }
                    self.state = Some(begin(file)?);
                }
                Some(FrameState::Within(mut frame)) => {
                    let read = frame.read(out)?;
                    if read > 0 || out.is_empty() {
                        self.state = Some(FrameState::Within(frame));
                        return Ok(read);
                    }
                    self.state = Some(FrameState::Between(frame.into_inner()));
                }
            }
        }
    }
}

/// Open the frame that begins here, or skip it.
fn begin<R: BufRead>(mut file: R) -> io::Result<FrameState<R>> {
    let magic: Vec<u8> = file.fill_buf()?.iter().take(4).copied().collect();
    if let [0x50..=0x5f, 0x2a, 0x4d, 0x18] = magic[..] {
        return skip(file).map(FrameState::Between);
    }
    let frame = StreamingDecoder::new(file).map_err(io::Error::other)?;
    Ok(FrameState::Within(Box::new(frame)))
}

/// Skip a frame without data: its magic number, its length, and the bytes that the length counts. RFC 8878.
fn skip<R: BufRead>(mut file: R) -> io::Result<R> {
    let mut header = [0; 8];
    file.read_exact(&mut header)?;
    let [_, _, _, _, length @ ..] = header;
    let length = u64::from(u32::from_le_bytes(length));
    if io::copy(&mut file.by_ref().take(length), &mut io::sink())? < length {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    Ok(file)
}

const BUFFER: usize = 1 << 18;
