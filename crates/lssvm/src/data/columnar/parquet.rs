//! Parquet files: the footer, and row groups read batch by batch.

use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReader, RowGroups};
use parquet::arrow::{
    FieldLevels, ProjectionMask, parquet_to_arrow_field_levels, parquet_to_arrow_schema,
};
use parquet::column::page::PageIterator;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData};

use super::pages::{Once, Pages, Shared};
use super::{Batches, damaged, guarded, thrift};
use crate::data::bytes::check_length;
use crate::data::detect::PARQUET;
use crate::data::source::Source;
use crate::error::Place;
use crate::{Error, Result};

/// Bytes at the end: the length of the footer, and the magic.
const TAIL: u64 = 8;

/// A Parquet file that is being read.
pub(super) struct Parquet {
    shared: Arc<Shared>,
    metadata: Arc<ParquetMetaData>,
    /// What the columns are in Arrow's words.
    fields: Fields,
    rows: u64,
    /// The fields that are read, and so many rows at a time.
    levels: Option<FieldLevels>,
    batch_rows: usize,
    next_group: usize,
    group: Option<ParquetRecordBatchReader>,
    /// Rows of the current group that are still to come.
    rows_left: u64,
}

impl Parquet {
    /// Reads the footer of a file. It, and any page, may take `most` bytes.
    pub(super) fn open(source: Source, most: u64) -> Result<Self> {
        let metadata = footer(&source, most)?;
        let path = source.path().to_path_buf();
        let mut rows: u64 = 0;
        for group in metadata.row_groups() {
            let own = u64::try_from(group.num_rows()).ok();
            rows = own.and_then(|own| rows.checked_add(own)).ok_or_else(|| {
                damaged(
                    &path,
                    "the number of rows of a row group is no number of rows",
                )
            })?;
        }
        let fields = fields(&path, &metadata)?;
        Ok(Self {
            shared: Arc::new(Shared {
                source,
                most,
                problem: Mutex::new(None),
            }),
            metadata: Arc::new(metadata),
            fields,
            rows,
            levels: None,
            batch_rows: 1,
            next_group: 0,
            group: None,
            rows_left: 0,
        })
    }

    fn path(&self) -> &Path {
        self.shared.source.path()
    }

    /// Begins the next row group that has rows; false behind the last.
    fn begin_group(&mut self, levels: &FieldLevels) -> Result<bool> {
        while let Some(about) = self.metadata.row_groups().get(self.next_group) {
            let group = Group {
                shared: Arc::clone(&self.shared),
                metadata: Arc::clone(&self.metadata),
                index: self.next_group,
            };
            self.next_group += 1;
            self.rows_left = u64::try_from(about.num_rows()).unwrap_or(0);
            if self.rows_left == 0 {
                continue;
            }
            let batch_rows = self.batch_rows.min(self.rows_left as usize);
            let reader = guarded(self.path(), || {
                let reader = ParquetRecordBatchReader::try_new_with_row_groups(
                    levels, &group, batch_rows, None,
                );
                reader.map_err(|error| self.problem(&error.to_string()))
            });
            self.group = Some(reader?);
            return Ok(true);
        }
        Ok(false)
    }

    /// Our own error if there is one, else what the decoder says.
    fn problem(&self, text: &str) -> Error {
        let own = self.shared.problem.lock().ok().and_then(|mut p| p.take());
        own.unwrap_or_else(|| damaged(self.path(), text))
    }
}

impl Batches for Parquet {
    fn fields(&self) -> &Fields {
        &self.fields
    }

    fn rows(&self) -> u64 {
        self.rows
    }

    /// A list that is null or empty counts as one value, so the numbers are those of
    /// lists of equal length only if all have values.
    fn list_length(&self, field: usize) -> Option<u64> {
        let schema = self.metadata.file_metadata().schema_descr();
        let column = (0..schema.num_columns()).find(|&i| schema.get_column_root_idx(i) == field)?;
        let mut length = None;
        for group in self.metadata.row_groups() {
            let rows = u64::try_from(group.num_rows()).ok()?;
            let values = u64::try_from(group.columns().get(column)?.num_values()).ok()?;
            if rows == 0 {
                continue;
            }
            let own = (values % rows == 0).then_some(values / rows)?;
            if *length.get_or_insert(own) != own {
                return None;
            }
        }
        length
    }

    fn choose(&mut self, fields: &[usize], batch_rows: usize) -> Result<()> {
        let schema = self.metadata.file_metadata().schema_descr();
        let mask = ProjectionMask::roots(schema, fields.iter().copied());
        let levels = guarded(self.path(), || {
            let levels = parquet_to_arrow_field_levels(schema, mask, Some(&self.fields));
            levels.map_err(|error| wrong(self.path(), &error))
        });
        self.levels = Some(levels?);
        self.batch_rows = batch_rows;
        Ok(())
    }

    fn next(&mut self) -> Result<Option<RecordBatch>> {
        let Some(levels) = self.levels.take() else {
            return Ok(None);
        };
        if self.rows_left == 0 && !self.begin_group(&levels)? {
            return Ok(None);
        }
        self.levels = Some(levels);
        let Some(mut group) = self.group.take() else {
            return Ok(None);
        };
        let batch = guarded(self.shared.source.path(), || {
            let batch = group.next().transpose();
            batch.map_err(|error| self.problem(&error.to_string()))
        })?;
        let rows = batch.as_ref().map_or(0, |batch| batch.num_rows() as u64);
        self.rows_left = match self.rows_left.checked_sub(rows) {
            Some(left) if rows > 0 => left,
            _ => {
                let problem = "a row group has not as many rows as the footer says";
                return Err(damaged(self.path(), problem));
            }
        };
        self.group = Some(group);
        Ok(batch)
    }
}

/// What the end of the file says of all of it.
fn footer(source: &Source, most: u64) -> Result<ParquetMetaData> {
    let path = source.path();
    let length = source.length();
    let tail_at = length.checked_sub(TAIL);
    let tail = match tail_at.filter(|&at| at >= PARQUET.len() as u64) {
        Some(at) => source.part(at, length)?,
        None => return Err(damaged(path, "it is too short")),
    };
    let (size, magic) = tail.split_at(4);
    if magic == b"PARE" {
        let problem = "the Parquet file is encrypted; save it without encryption";
        return Err(Error::file(path, Place::Whole, problem));
    }
    if magic != PARQUET {
        return Err(damaged(
            path,
            "it does not end as Parquet files do, so it may be cut off",
        ));
    }
    let size = size
        .iter()
        .rev()
        .fold(0, |n, &byte| n << 8 | u64::from(byte));
    let end = length - TAIL;
    let start = end
        .checked_sub(size)
        .filter(|&at| at >= PARQUET.len() as u64);
    let Some(start) = start else {
        return Err(damaged(path, "its footer is longer than the file"));
    };
    check_length(path, size, Some(most))?;
    let bytes = source.part(start, end)?;
    if !thrift::is_sound_schema(&bytes) {
        return Err(damaged(path, "its schema cannot be read"));
    }
    guarded(path, || {
        ParquetMetaDataReader::decode_metadata(&bytes).map_err(|error| wrong(path, &error))
    })
}

/// The columns in Arrow's words. The Arrow schema that a file may carry is not looked at: it
/// says nothing that is needed, and is one thing more to trust. Text is viewed where it lies
/// in a page: a long text in many rows is not copied for each.
fn fields(path: &Path, metadata: &ParquetMetaData) -> Result<Fields> {
    let viewed = |field: &Arc<Field>| match field.data_type() {
        DataType::Utf8 => Arc::new(field.as_ref().clone().with_data_type(DataType::Utf8View)),
        _ => Arc::clone(field),
    };
    guarded(path, || {
        let schema = parquet_to_arrow_schema(metadata.file_metadata().schema_descr(), None);
        let schema = schema.map_err(|error| wrong(path, &error))?;
        Ok(schema.fields().iter().map(viewed).collect())
    })
}

fn wrong(path: &Path, error: &ParquetError) -> Error {
    damaged(path, &error.to_string())
}

/// One row group.
struct Group {
    shared: Arc<Shared>,
    metadata: Arc<ParquetMetaData>,
    index: usize,
}

impl RowGroups for Group {
    fn num_rows(&self) -> usize {
        usize::try_from(self.metadata.row_group(self.index).num_rows()).unwrap_or(0)
    }

    fn column_chunks(&self, column: usize) -> ParquetResult<Box<dyn PageIterator>> {
        let chunk = self.metadata.row_group(self.index).column(column);
        let pages = self.shared.told(Pages::new(&self.shared, chunk))?;
        Ok(Box::new(Once(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.metadata.row_group(self.index)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.metadata
    }
}
