//! The pages of one column in one row group of a Parquet file, each checked before it is
//! unpacked: its place in the file, its size, how many values it has, its checksum if there
//! is one.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use parquet::basic::Compression;
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::ColumnChunkMetaData;

use super::thrift::{self, Head, Kind};
use super::unpack::unpack;
use crate::data::source::Source;
use crate::error::Place;
use crate::{Error, Result};

/// Bytes that mostly hold the head of a page, and bytes that always do: it has the least and
/// the greatest value of the page, which may be long texts.
const SHORT_HEAD: u64 = 1 << 8;
const LONGEST_HEAD: u64 = 1 << 24;

/// What all columns of a file share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) source: Source,
    /// Bytes that a page may have.
    pub(super) most: u64,
    /// What went wrong first: of our errors the decoder hands on the text at most.
    pub(super) problem: Mutex<Option<Error>>,
}

impl Shared {
    /// Hands an error of ours to the decoder, and keeps it.
    pub(super) fn told<T>(&self, result: Result<T>) -> ParquetResult<T> {
        result.map_err(|error| {
            let told = ParquetError::General(error.to_string());
            if let Ok(mut problem) = self.problem.lock() {
                problem.get_or_insert(error);
            }
            told
        })
    }
}

/// The pages of a column.
pub(super) struct Pages {
    shared: Arc<Shared>,
    column: String,
    codec: Compression,
    at: u64,
    end: u64,
    values_left: u64,
    /// The head of the page at `at`, if it was read already.
    head: Option<Head>,
}

impl Pages {
    pub(super) fn new(shared: &Arc<Shared>, chunk: &ColumnChunkMetaData) -> Result<Self> {
        let data = chunk.data_page_offset();
        // Some writers have 0 where there is no dictionary.
        let dictionary = chunk.dictionary_page_offset().filter(|&at| at > 0);
        let start = dictionary.map_or(data, |at| at.min(data));
        let column = chunk.column_path().string();
        let place = || -> Option<(u64, u64, u64)> {
            let start = u64::try_from(start).ok()?;
            let end = start.checked_add(u64::try_from(chunk.compressed_size()).ok()?)?;
            let values = u64::try_from(chunk.num_values()).ok()?;
            (end <= shared.source.length()).then_some((start, end, values))
        };
        if chunk.file_path().is_some() {
            let problem =
                format!("the column '{column}' is in another file; write all columns to one file");
            return Err(Error::file(shared.source.path(), Place::Whole, problem));
        }
        let (at, end, values_left) = place().ok_or_else(|| {
            let problem = format!(
                "the column '{column}' lies outside of the file, which is damaged; get it again"
            );
            Error::file(shared.source.path(), Place::Whole, problem)
        })?;
        Ok(Self {
            shared: Arc::clone(shared),
            column,
            codec: chunk.compression(),
            at,
            end,
            values_left,
            head: None,
        })
    }

    fn damaged(&self, problem: &str) -> Error {
        let problem = format!(
            "column '{}': the page is damaged: {problem}; get the file again",
            self.column
        );
        Error::file(self.shared.source.path(), Place::Byte(self.at), problem)
    }

    /// The head of the next page; none behind the last.
    fn peek(&mut self) -> Result<Option<&Head>> {
        while self.head.is_none() {
            if self.at >= self.end || self.values_left == 0 {
                return Ok(None);
            }
            let head = self.read_head()?;
            if head.kind == Kind::Index {
                self.at += head.length as u64 + u64::from(head.packed);
            } else {
                self.head = Some(head);
            }
        }
        Ok(self.head.as_ref())
    }

    fn read_head(&self) -> Result<Head> {
        let left = self.end - self.at;
        let mut length = SHORT_HEAD;
        let head = loop {
            let bytes = self
                .shared
                .source
                .part(self.at, self.at + length.min(left))?;
            match thrift::head(&bytes) {
                Some(head) => break head,
                None if length >= left.min(LONGEST_HEAD) => {
                    return Err(self.damaged("it has no head"));
                }
                None => length *= 16,
            }
        };
        if head.length as u64 + u64::from(head.packed) > left {
            return Err(self.damaged("it is longer than the column"));
        }
        let needed = u64::from(head.unpacked);
        if needed > self.shared.most {
            let path = self.shared.source.path().display();
            return Err(Error::Memory {
                what: format!("{path}: a page of the column '{}'", self.column),
                needed,
                available: self.shared.most,
                remedy: "write the file with smaller pages, or allow more memory".to_string(),
            });
        }
        Ok(head)
    }

    fn next_page(&mut self) -> Result<Option<Page>> {
        self.peek()?;
        let Some(head) = self.head.take() else {
            return Ok(None);
        };
        let start = self.at + head.length as u64;
        let end = start + u64::from(head.packed);
        let packed = self.shared.source.part(start, end)?.into_owned();
        if let Some(expected) = head.crc {
            let mut crc = flate2::Crc::new();
            crc.update(&packed);
            if crc.sum() != expected {
                return Err(self.damaged("it does not match its checksum"));
            }
        }
        let page = self.page(&head, packed)?;
        self.at = end;
        Ok(Some(page))
    }

    /// The page with this head.
    fn page(&mut self, head: &Head, packed: Vec<u8>) -> Result<Page> {
        if let Kind::Data { values, .. } | Kind::DataV2 { values, .. } = head.kind {
            let left = self.values_left.checked_sub(u64::from(values));
            self.values_left =
                left.ok_or_else(|| self.damaged("it has more values than the column"))?;
        }
        let size = head.unpacked as usize;
        let content = |codec, packed: &[u8], size| {
            unpack(codec, packed, size).map_err(|problem| self.damaged(&problem))
        };
        Ok(match head.kind {
            Kind::Data {
                values,
                encoding,
                definition,
                repetition,
            } => Page::DataPage {
                buf: content(self.codec, &packed, size)?.into(),
                num_values: values,
                encoding,
                def_level_encoding: definition,
                rep_level_encoding: repetition,
                statistics: None,
            },
            Kind::Dictionary {
                values,
                encoding,
                is_sorted,
            } => Page::DictionaryPage {
                buf: content(self.codec, &packed, size)?.into(),
                num_values: values,
                encoding,
                is_sorted,
            },
            Kind::DataV2 {
                values,
                nulls,
                rows,
                encoding,
                definition,
                repetition,
                is_packed,
            } => {
                let levels = definition as usize + repetition as usize;
                let parts = packed.split_at_checked(levels);
                let (Some((levels_bytes, rest)), Some(size)) = (parts, size.checked_sub(levels))
                else {
                    return Err(self.damaged("it has no room for its levels"));
                };
                // A page of nothing but nulls has no values, and so nothing to unpack.
                let codec = match is_packed && size > 0 {
                    true => self.codec,
                    false => Compression::UNCOMPRESSED,
                };
                let rest = if size == 0 { &[] } else { rest };
                let values_bytes = content(codec, rest, size)?;
                Page::DataPageV2 {
                    buf: Bytes::from([levels_bytes, &values_bytes].concat()),
                    num_values: values,
                    encoding,
                    num_nulls: nulls,
                    num_rows: rows,
                    def_levels_byte_len: definition,
                    rep_levels_byte_len: repetition,
                    is_compressed: false,
                    statistics: None,
                }
            }
            Kind::Index => return Err(self.damaged("it is an index")),
        })
    }
}

impl Iterator for Pages {
    type Item = ParquetResult<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> ParquetResult<Option<Page>> {
        let page = self.next_page();
        self.shared.told(page)
    }

    fn peek_next_page(&mut self) -> ParquetResult<Option<PageMetadata>> {
        let about = self.peek().map(|head| {
            head.map(|head| match head.kind {
                Kind::DataV2 { values, rows, .. } => PageMetadata {
                    num_rows: Some(rows as usize),
                    num_levels: Some(values as usize),
                    is_dict: false,
                },
                Kind::Data { values, .. } => PageMetadata {
                    num_rows: None,
                    num_levels: Some(values as usize),
                    is_dict: false,
                },
                Kind::Dictionary { .. } | Kind::Index => PageMetadata {
                    num_rows: None,
                    num_levels: None,
                    is_dict: true,
                },
            })
        });
        self.shared.told(about)
    }

    /// Rows are never skipped, so pages are not either.
    fn skip_next_page(&mut self) -> ParquetResult<()> {
        self.get_next_page().map(|_| ())
    }
}

/// The one reader of pages that a column of a row group has.
pub(super) struct Once(pub(super) Option<Pages>);

impl Iterator for Once {
    type Item = ParquetResult<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        let pages = self.0.take()?;
        Some(Ok(Box::new(pages)))
    }
}

impl PageIterator for Once {}
