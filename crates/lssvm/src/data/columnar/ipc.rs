//! Arrow IPC: a stream of messages (a schema, dictionaries, batches of rows), or a file that
//! wraps one.
//!
//! ```text
//! file     ARROW1 0 0, stream, footer, length of the footer, ARROW1
//! stream   messages, and one of length 0 at the end
//! message  ff ff ff ff (not in old files), length, head, body
//! ```
//!
//! The footer of a file says again where its messages are, and is not needed: both are read
//! from their beginning. First only the heads of the messages are, which say how many rows
//! there are; then one batch after the other.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_buffer::Buffer;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::reader::{read_dictionary, read_record_batch};
use arrow_ipc::{Endianness, Message, MetadataVersion, root_as_message};
use arrow_schema::{DataType, Fields, Schema};

use super::{Batches, damaged, guarded};
use crate::data::detect::{ARROW, ARROW_MESSAGE};
use crate::data::source::Source;
use crate::error::Place;
use crate::{Error, Result};

/// How a file ends, after the length of its footer.
const END: &[u8] = b"ARROW1";

/// Bytes that may lie between the first magic and the first message.
const MOST_FILL: u64 = 64;

/// Bytes before each packed buffer, which say how long it is when it is unpacked.
const LENGTH: u64 = 8;

/// An Arrow file or stream that is being read.
pub(super) struct Ipc {
    source: Source,
    /// Bytes that a message may take, unpacked.
    most: u64,
    schema: Arc<Schema>,
    /// All but the schema.
    messages: Vec<Located>,
    rows: u64,
    /// For each field how many values the lists of a row have; none if not all have as many.
    list_lengths: Vec<Option<u64>>,
    dictionaries: HashMap<i64, ArrayRef>,
    chosen: Vec<usize>,
    next_message: usize,
}

/// Where a message is.
#[derive(Debug, Clone)]
struct Located {
    head: Range<u64>,
    body: Range<u64>,
}

impl Ipc {
    /// Reads the heads of all messages. Each message may take `most` bytes.
    pub(super) fn open(source: Source, most: u64) -> Result<Self> {
        let stream = stream(&source)?;
        let Some(first) = next_message(&source, stream.clone())? else {
            return Err(damaged(source.path(), "it has no schema"));
        };
        let bytes = source.part(first.head.start, first.head.end)?;
        let schema = schema(source.path(), &message(source.path(), &bytes)?)?;
        drop(bytes);
        let mut ipc = Self {
            most,
            list_lengths: vec![None; schema.fields().len()],
            schema: Arc::new(schema),
            messages: Vec::new(),
            rows: 0,
            dictionaries: HashMap::new(),
            chosen: Vec::new(),
            next_message: 0,
            source,
        };
        let mut at = first.body.end;
        let mut lengths: Vec<Lengths> = vec![Lengths::Unknown; ipc.list_lengths.len()];
        while let Some(located) = next_message(&ipc.source, at..stream.end)? {
            at = located.body.end;
            let bytes = ipc.source.part(located.head.start, located.head.end)?;
            let message = message(ipc.path(), &bytes)?;
            if let Some(batch) = message.header_as_record_batch() {
                let rows = u64::try_from(batch.length()).ok();
                let all = rows.and_then(|rows| ipc.rows.checked_add(rows));
                let (Some(rows), Some(all)) = (rows, all) else {
                    return Err(damaged(ipc.path(), "a batch has no number of rows"));
                };
                note_lengths(&ipc.schema, &batch, rows, &mut lengths);
                ipc.rows = all;
            }
            ipc.messages.push(located);
        }
        ipc.list_lengths = lengths.iter().map(Lengths::get).collect();
        Ok(ipc)
    }

    fn path(&self) -> &Path {
        self.source.path()
    }

    /// Decodes a message; a batch of rows if it is one.
    fn decode(&mut self, located: &Located) -> Result<Option<RecordBatch>> {
        let path = self.source.path().to_path_buf();
        let head = self.source.part(located.head.start, located.head.end)?;
        let message = message(&path, &head)?;
        let dictionary = message.header_as_dictionary_batch();
        let batch = match (message.header_as_record_batch(), dictionary) {
            (Some(batch), _) => batch,
            (None, Some(dictionary)) => dictionary
                .data()
                .ok_or_else(|| damaged(&path, "a dictionary has no values"))?,
            (None, None) => {
                let problem = "a message is neither a dictionary nor a batch of rows";
                return Err(damaged(&path, problem));
            }
        };
        let body = self.body(&batch, located)?;
        let version = message.version();
        let wrong = |error: arrow_schema::ArrowError| damaged(&path, &error.to_string());
        guarded(&path, || match dictionary {
            Some(dictionary) => {
                let all = &mut self.dictionaries;
                read_dictionary(&body, dictionary, &self.schema, all, &version).map_err(wrong)?;
                Ok(None)
            }
            None => {
                let schema = Arc::clone(&self.schema);
                let chosen = Some(self.chosen.as_slice());
                let rows =
                    read_record_batch(&body, batch, schema, &self.dictionaries, chosen, &version);
                rows.map(Some).map_err(wrong)
            }
        })
    }

    /// The body of a message, whose buffers lie in it and may be unpacked.
    fn body(&self, batch: &arrow_ipc::RecordBatch<'_>, located: &Located) -> Result<Buffer> {
        let length = located.body.end - located.body.start;
        self.check_size(length)?;
        let body = self.source.part(located.body.start, located.body.end)?;
        let mut needed = length;
        for buffer in batch.buffers().into_iter().flatten() {
            let own = || {
                let start = usize::try_from(buffer.offset()).ok()?;
                let length = usize::try_from(buffer.length()).ok()?;
                body.get(start..)?.get(..length)
            };
            let Some(own) = own() else {
                return Err(damaged(self.path(), "a buffer lies outside of its message"));
            };
            if batch.compression().is_some()
                && let Some(length) = own.first_chunk::<{ LENGTH as usize }>()
            {
                // -1: it is not packed.
                let unpacked = u64::try_from(i64::from_le_bytes(*length)).unwrap_or(0);
                needed = needed.saturating_add(unpacked);
            }
        }
        self.check_size(needed)?;
        Ok(Buffer::from_vec(body.into_owned()))
    }

    fn check_size(&self, needed: u64) -> Result<()> {
        match needed > self.most {
            false => Ok(()),
            true => Err(Error::Memory {
                what: format!("{}: a batch of rows", self.path().display()),
                needed,
                available: self.most,
                remedy: "write the file in smaller batches, or allow more memory".to_string(),
            }),
        }
    }
}

impl Batches for Ipc {
    fn fields(&self) -> &Fields {
        self.schema.fields()
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    fn list_length(&self, field: usize) -> Option<u64> {
        self.list_lengths.get(field).copied().flatten()
    }

    fn choose(&mut self, fields: &[usize], _batch_rows: usize) -> Result<()> {
        self.chosen = fields.to_vec();
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        while let Some(located) = self.messages.get(self.next_message).cloned() {
            self.next_message += 1;
            if let Some(batch) = self.decode(&located)? {
                return Ok(Some(batch));
            }
        }
        Ok(None)
    }
}

/// Where the messages are: a file has a footer behind them.
fn stream(source: &Source) -> Result<Range<u64>> {
    let length = source.length();
    let start = source.part(0, length.min(ARROW.len() as u64))?;
    if *start != *ARROW {
        return Ok(0..length);
    }
    let cut = || {
        damaged(
            source.path(),
            "it does not end as Arrow files do, so it may be cut off",
        )
    };
    let magic = length.checked_sub(END.len() as u64).ok_or_else(cut)?;
    let size = magic.checked_sub(4).filter(|&at| at >= ARROW.len() as u64);
    let size_at = size.ok_or_else(cut)?;
    if *source.part(magic, length)? != *END {
        return Err(cut());
    }
    let size = source.part(size_at, magic)?;
    let size = size
        .iter()
        .rev()
        .fold(0, |n, &byte| n << 8 | u64::from(byte));
    let end = size_at.checked_sub(size);
    let Some(end) = end.filter(|&end| end >= ARROW.len() as u64) else {
        return Err(damaged(source.path(), "its footer is longer than the file"));
    };
    // Zeros fill up to where the writer wants the first message to be.
    let head = source.part(0, end.min(ARROW.len() as u64 + MOST_FILL))?;
    let zeros = head[END.len()..].iter().take_while(|&&byte| byte == 0);
    Ok((END.len() + zeros.count()) as u64..end)
}

/// The next message in these bytes; none at the end of the stream.
fn next_message(source: &Source, within: Range<u64>) -> Result<Option<Located>> {
    let path = source.path();
    let cut = || {
        damaged(
            path,
            "a message is longer than the file, which may be cut off",
        )
    };
    let mut at = within.start;
    let mut word = || -> Result<Option<[u8; 4]>> {
        if at == within.end {
            return Ok(None);
        }
        let mut word = [0; 4];
        let next = at.checked_add(4).filter(|&next| next <= within.end);
        let next = next.ok_or_else(cut)?;
        source.read(at, &mut word)?;
        at = next;
        Ok(Some(word))
    };
    let size = match word()? {
        Some(ARROW_MESSAGE) => word()?,
        size => size,
    };
    let size = match size.map(u32::from_le_bytes) {
        None | Some(0) => return Ok(None),
        Some(size) => u64::from(size),
    };
    let head_end = at.checked_add(size).filter(|&end| end <= within.end);
    let head = at..head_end.ok_or_else(cut)?;
    let bytes = source.part(head.start, head.end)?;
    let length = u64::try_from(message(path, &bytes)?.bodyLength()).ok();
    let body_end = length.and_then(|length| head.end.checked_add(length));
    let body_end = body_end.filter(|&end| end <= within.end).ok_or_else(cut)?;
    Ok(Some(Located {
        body: head.end..body_end,
        head,
    }))
}

fn message<'a>(path: &Path, bytes: &'a [u8]) -> Result<Message<'a>> {
    let message = root_as_message(bytes).map_err(|error| damaged(path, &error.to_string()))?;
    if message.version() < MetadataVersion::V4 {
        let problem = "the Arrow file is of a version before 0.8; write it again by a newer one";
        return Err(Error::file(path, Place::Whole, problem));
    }
    Ok(message)
}

fn schema(path: &Path, message: &Message<'_>) -> Result<Schema> {
    let Some(schema) = message.header_as_schema() else {
        return Err(damaged(path, "it does not begin with a schema"));
    };
    if schema.endianness() != Endianness::Little {
        let problem = "the Arrow file has its numbers in big-endian order, which is not read; \
                       write it on a little-endian machine";
        return Err(Error::file(path, Place::Whole, problem));
    }
    guarded(path, || {
        try_fb_to_schema(schema).map_err(|error| damaged(path, &error.to_string()))
    })
}

/// How many values the lists of a column have.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lengths {
    Unknown,
    All(u64),
    Different,
}

impl Lengths {
    fn get(&self) -> Option<u64> {
        match *self {
            Lengths::All(length) => Some(length),
            Lengths::Unknown | Lengths::Different => None,
        }
    }
}

/// Notes how many values the lists of a batch have: the node of the values follows that of
/// the lists.
fn note_lengths(
    schema: &Schema,
    batch: &arrow_ipc::RecordBatch<'_>,
    rows: u64,
    lengths: &mut [Lengths],
) {
    let Some(nodes) = batch.nodes().filter(|_| rows > 0) else {
        return;
    };
    let mut at = 0;
    for (field, length) in schema.fields().iter().zip(lengths) {
        if at + 1 < nodes.len() {
            let values = u64::try_from(nodes.get(at + 1).length()).unwrap_or(u64::MAX);
            let own = Lengths::All(values / rows);
            *length = match *length {
                _ if values % rows != 0 => Lengths::Different,
                Lengths::Unknown => own,
                known if known == own => known,
                _ => Lengths::Different,
            };
        }
        at += nodes_of(field.data_type());
    }
}

/// How many nodes a column has in a batch.
fn nodes_of(data_type: &DataType) -> usize {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => 1 + nodes_of(item.data_type()),
        DataType::Struct(fields) => {
            1 + fields
                .iter()
                .map(|field| nodes_of(field.data_type()))
                .sum::<usize>()
        }
        DataType::Union(fields, _) => {
            1 + fields
                .iter()
                .map(|(_, field)| nodes_of(field.data_type()))
                .sum::<usize>()
        }
        DataType::RunEndEncoded(ends, values) => {
            1 + nodes_of(ends.data_type()) + nodes_of(values.data_type())
        }
        _ => 1,
    }
}
