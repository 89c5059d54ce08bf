//! Labels collected row by row, in parts that are read on several threads.

use std::collections::HashMap;

use super::{Interned, Labels, MAX_NAMES, number};
use crate::linalg::Matrix;

/// Collects the labels of a text file, row by row.
pub(in crate::data) struct Builder {
    columns: usize,
    rows: usize,
    codes_by_name: HashMap<String, u32>,
    names: Vec<String>,
    codes: Vec<u32>,
    values: Vec<f64>,
    no_number: Option<(usize, String)>,
}

impl Builder {
    /// For labels in this many columns.
    pub(in crate::data) fn new(columns: usize) -> Self {
        Self {
            columns,
            rows: 0,
            codes_by_name: HashMap::new(),
            names: Vec::new(),
            codes: Vec::new(),
            values: Vec::new(),
            no_number: None,
        }
    }

    /// Adds the label of a row, of one column.
    pub(in crate::data) fn push(&mut self, label: &str) {
        self.intern(label);
        if self.no_number.is_none() {
            match number(label) {
                Some(value) => self.values.push(value),
                None => self.no_number = Some((self.rows, label.to_string())),
            }
        }
        self.rows += 1;
    }

    /// Adds the labels of a row, of several columns.
    pub(in crate::data) fn push_values(&mut self, values: impl IntoIterator<Item = f64>) {
        self.values.extend(values);
        self.rows += 1;
    }

    /// One name more than allowed is kept, as the sign that there were more.
    fn intern(&mut self, label: &str) {
        if self.names.len() > MAX_NAMES {
            return;
        }
        let code = match self.codes_by_name.get(label) {
            Some(&code) => code,
            None => {
                let code = self.names.len() as u32;
                self.codes_by_name.insert(label.to_string(), code);
                self.names.push(label.to_string());
                code
            }
        };
        self.codes.push(code);
    }

    /// Adds the rows of another builder after those of this one.
    pub(in crate::data) fn append(&mut self, other: Builder) {
        if other.names.len() > MAX_NAMES {
            self.names = other.names;
        } else {
            for &code in &other.codes {
                self.intern(&other.names[code as usize]);
            }
        }
        self.values.extend(other.values);
        if self.no_number.is_none() {
            self.no_number = other.no_number.map(|(row, label)| (self.rows + row, label));
        }
        self.rows += other.rows;
    }

    pub(in crate::data) fn finish(self) -> Labels {
        let interned = self.columns == 1 && self.names.len() <= MAX_NAMES;
        let (names, codes) = (self.names, self.codes);
        let numeric = self.no_number.is_none();
        Labels {
            rows: self.rows,
            columns: self.columns,
            text: interned.then_some(Interned { names, codes }),
            values: numeric.then(|| Matrix::from_vec(self.rows, self.columns, self.values)),
            no_number: self.no_number,
            source: None,
            column_names: Vec::new(),
            column_places: Vec::new(),
            settled: false,
        }
    }
}
