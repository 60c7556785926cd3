//! Numbers as bytes: whole numbers in seven bits a byte (LEB128), others in eight bytes.

/// Bytes that values are appended to.
#[derive(Debug, Default)]
pub(crate) struct RecordWriter(Vec<u8>);

impl RecordWriter {
    pub(crate) fn finish(self) -> Vec<u8> {
        self.0
    }

    pub(crate) fn byte(&mut self, value: u8) {
        self.0.push(value);
    }

    pub(crate) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(crate) fn real(&mut self, value: f64) {
        self.0.extend(value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend(text.as_bytes());
    }
}

/// Reads what a [`RecordWriter`] wrote. The checksum of a record protects its bytes, so they are
/// what was written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordReader<'b>(&'b [u8]);

impl<'b> RecordReader<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        RecordReader(bytes)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.bytes(1)[0]
    }

    pub(crate) fn number(&mut self) -> u64 {
        let (mut value, mut shift) = (0, 0);
        loop {
            let byte = self.byte();
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return value;
            }
            shift += 7;
        }
    }

    pub(crate) fn count(&mut self) -> usize {
        self.number() as usize
    }

    pub(crate) fn real(&mut self) -> f64 {
        f64::from_le_bytes(self.bytes(8).try_into().expect("eight bytes"))
    }

    pub(crate) fn text(&mut self) -> &'b str {
        let length = self.count();
        std::str::from_utf8(self.bytes(length)).expect("the writer wrote text")
    }

    fn bytes(&mut self, count: usize) -> &'b [u8] {
        let (bytes, rest) = self.0.split_at(count);
        self.0 = rest;
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_back_as_they_were_written() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        let mut writer = RecordWriter::default();
        numbers.iter().for_each(|number| writer.number(*number));
        writer.real(-0.1);
        writer.text("µs");
        writer.byte(7);
        let bytes = writer.finish();
        let mut reader = RecordReader::new(&bytes);
        assert_eq!(numbers.map(|_| reader.number()), numbers);
        assert_eq!((reader.real(), reader.text(), reader.byte()), (-0.1, "µs", 7));
    }
}
