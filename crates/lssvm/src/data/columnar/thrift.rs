//! What must be known of a Parquet file before its numbers can be trusted: the shape of its
//! schema, and the heads of its pages. Both are Thrift structures in the compact protocol.
//!
//! The parquet crate reads them too, but follows a schema as deep as it goes, on the stack,
//! makes room for as many children as one claims to have, and unpacks pages to whatever size
//! they have.

use parquet::basic::Encoding;

/// Levels of a schema; lists of numbers have four.
const MAX_DEPTH: usize = 64;

/// The types of the compact protocol that matter here.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Bytes that are read from their beginning; `None` is what they do not hold.
struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn jump(&mut self, length: u64) -> Option<()> {
        let at = self.at.checked_add(usize::try_from(length).ok()?)?;
        (at <= self.bytes.len()).then(|| self.at = at)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn int(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn i32(&mut self) -> Option<i32> {
        self.int()?.try_into().ok()
    }

    /// A size, which is written with a sign.
    fn u32(&mut self) -> Option<u32> {
        self.int()?.try_into().ok()
    }

    /// How many elements a list has, and of which type they are.
    fn list(&mut self) -> Option<(u64, u8)> {
        let head = self.byte()?;
        let size = match head >> 4 {
            15 => self.varint()?,
            size => u64::from(size),
        };
        Some((size, head & 0x0f))
    }

    /// Reads a structure. `field` is given number and type of each field; it reads it and
    /// says so, or leaves it.
    fn fields(
        &mut self,
        depth: usize,
        field: &mut dyn FnMut(&mut Self, i64, u8) -> Option<bool>,
    ) -> Option<()> {
        let mut id = 0;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Some(());
            }
            let kind = head & 0x0f;
            id = match head >> 4 {
                0 => self.int()?,
                more => id + i64::from(more),
            };
            if !field(self, id, kind)? {
                self.skip(kind, depth)?;
            }
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            TRUE | FALSE => Some(()),
            BYTE => self.jump(1),
            I16 | I32 | I64 => self.varint().map(|_| ()),
            DOUBLE => self.jump(8),
            BINARY => {
                let length = self.varint()?;
                self.jump(length)
            }
            LIST | SET => {
                let (size, kind) = self.list()?;
                (0..size).try_for_each(|_| self.skip_element(kind, depth))
            }
            MAP => match self.varint()? {
                0 => Some(()),
                size => {
                    let kinds = self.byte()?;
                    (0..size).try_for_each(|_| {
                        self.skip_element(kinds >> 4, depth)?;
                        self.skip_element(kinds & 0x0f, depth)
                    })
                }
            },
            STRUCT => self.fields(depth, &mut |_, _, _| Some(false)),
            _ => None,
        }
    }

    /// Truths outside of structures have a byte of their own.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            TRUE | FALSE => self.jump(1),
            kind => self.skip(kind, depth),
        }
    }
}

/// Whether the schema in the footer of a file is one, and not too deep.
pub(super) fn is_sound_schema(footer: &[u8]) -> bool {
    let mut children: Option<Vec<u64>> = None;
    let read = Reader::new(footer).fields(MAX_DEPTH, &mut |reader, id, kind| {
        if (id, kind) != (2, LIST) {
            return Some(false);
        }
        let (size, STRUCT) = reader.list()? else {
            return None;
        };
        let mut counts = Vec::new();
        for _ in 0..size {
            let mut count = 0;
            reader.fields(MAX_DEPTH, &mut |reader, id, kind| {
                let is_count = (id, kind) == (5, I32);
                if is_count {
                    count = u64::from(reader.u32()?);
                }
                Some(is_count)
            })?;
            counts.push(count);
        }
        children = Some(counts);
        Some(true)
    });
    match children {
        Some(counts) if read.is_some() => is_tree(&counts),
        _ => false,
    }
}

/// Whether nodes with so many children, each before its children, are one tree that is not
/// too deep.
fn is_tree(counts: &[u64]) -> bool {
    // How many children of each node above are still to come.
    let mut above: Vec<u64> = vec![1];
    for &count in counts {
        match above.last_mut() {
            Some(left) => *left -= 1,
            None => return false,
        }
        if count > 0 {
            above.push(count);
        }
        if above.len() > MAX_DEPTH {
            return false;
        }
        while above.last() == Some(&0) {
            above.pop();
        }
    }
    above.is_empty()
}

/// What the head of a page says of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Head {
    /// Bytes of this head.
    pub(super) length: usize,
    /// Bytes of the page that follow.
    pub(super) packed: u32,
    /// Bytes when it is unpacked.
    pub(super) unpacked: u32,
    pub(super) crc: Option<u32>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Data {
        values: u32,
        encoding: Encoding,
        definition: Encoding,
        repetition: Encoding,
    },
    DataV2 {
        values: u32,
        nulls: u32,
        rows: u32,
        encoding: Encoding,
        /// Bytes of levels, which are never packed.
        definition: u32,
        repetition: u32,
        is_packed: bool,
    },
    Dictionary {
        values: u32,
        encoding: Encoding,
        is_sorted: bool,
    },
    /// To be passed over.
    Index,
}

/// The head of a page, if the bytes begin with a whole one.
pub(super) fn head(bytes: &[u8]) -> Option<Head> {
    let mut reader = Reader::new(bytes);
    let (mut page, mut unpacked, mut packed, mut crc) = (None, None, None, None);
    let (mut data, mut dictionary, mut data2) = (None, None, None);
    reader.fields(MAX_DEPTH, &mut |reader, id, kind| {
        match (id, kind) {
            (1, I32) => page = Some(reader.i32()?),
            (2, I32) => unpacked = Some(reader.u32()?),
            (3, I32) => packed = Some(reader.u32()?),
            (4, I32) => crc = Some(reader.i32()? as u32),
            (5, STRUCT) => data = Some(numbers(reader)?),
            (7, STRUCT) => dictionary = Some(numbers(reader)?),
            (8, STRUCT) => data2 = Some(numbers(reader)?),
            _ => return Some(false),
        }
        Some(true)
    })?;
    let size = |number: Option<i64>| u32::try_from(number?).ok();
    let kind = match page? {
        0 => {
            let data = data?;
            Kind::Data {
                values: size(data[1])?,
                encoding: encoding(data[2])?,
                definition: encoding(data[3])?,
                repetition: encoding(data[4])?,
            }
        }
        1 => Kind::Index,
        2 => {
            let dictionary = dictionary?;
            Kind::Dictionary {
                values: size(dictionary[1])?,
                encoding: encoding(dictionary[2])?,
                is_sorted: dictionary[3] == Some(1),
            }
        }
        3 => {
            let data = data2?;
            Kind::DataV2 {
                values: size(data[1])?,
                nulls: size(data[2])?,
                rows: size(data[3])?,
                encoding: encoding(data[4])?,
                definition: size(data[5])?,
                repetition: size(data[6])?,
                is_packed: data[7] != Some(0),
            }
        }
        _ => return None,
    };
    Some(Head {
        length: reader.at,
        packed: packed?,
        unpacked: unpacked?,
        crc,
        kind,
    })
}

/// The whole numbers and truths among the first fields of a structure, by their number.
fn numbers(reader: &mut Reader<'_>) -> Option<[Option<i64>; 8]> {
    let mut numbers = [None; 8];
    reader.fields(MAX_DEPTH, &mut |reader, id, kind| {
        let number = match kind {
            TRUE | FALSE => i64::from(kind == TRUE),
            I32 => reader.int()?,
            _ => return Some(false),
        };
        if let Some(own) = usize::try_from(id).ok().and_then(|id| numbers.get_mut(id)) {
            *own = Some(number);
        }
        Some(true)
    })?;
    Some(numbers)
}

#[expect(deprecated, reason = "old files have levels packed by bits")]
fn encoding(number: Option<i64>) -> Option<Encoding> {
    Some(match number? {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        3 => Encoding::RLE,
        4 => Encoding::BIT_PACKED,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Page of data, 300 values in 1,000 bytes of which 20 are stored, and a field that no
    /// reader knows.
    const HEAD: [u8; 25] = [
        0x15, 0x00, 0x15, 0xd0, 0x0f, 0x15, 0x28, 0x2c, // type, sizes, structure 5
        0x15, 0xd8, 0x04, 0x15, 0x10, 0x15, 0x06, 0x15, 0x06, 0x00, // its fields
        0x58, 0x04, b'n', b'e', b'w', b'!', 0x00, // field 10: bytes
    ];

    #[test]
    fn a_head_is_read_and_no_part_of_it() {
        let expected = Head {
            length: HEAD.len(),
            packed: 20,
            unpacked: 1000,
            crc: None,
            kind: Kind::Data {
                values: 300,
                encoding: Encoding::RLE_DICTIONARY,
                definition: Encoding::RLE,
                repetition: Encoding::RLE,
            },
        };
        assert_eq!(head(&HEAD), Some(expected.clone()));
        let longer = [&HEAD[..], &[1, 2, 3]].concat();
        assert_eq!(head(&longer), Some(expected));
        for end in 0..HEAD.len() {
            assert_eq!(head(&HEAD[..end]), None, "{end}");
        }
    }

    #[test]
    fn a_schema_is_one_tree_of_some_depth() {
        assert!(is_tree(&[2, 0, 0]));
        assert!(is_tree(&[2, 1, 1, 0, 0]));
        assert!(!is_tree(&[2, 0]));
        assert!(!is_tree(&[1, 0, 0]));
        assert!(!is_tree(&[]));
        assert!(!is_tree(&[u64::from(u32::MAX), 0]));
        let chain = |n: usize| [vec![1; n], vec![0]].concat();
        assert!(is_tree(&chain(MAX_DEPTH - 2)));
        assert!(!is_tree(&chain(MAX_DEPTH)));
        assert!(!is_tree(&chain(1_000_000)));
    }
}
