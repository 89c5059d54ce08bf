//! Files with the lengths, places and checksums that they need, written from what the formats
//! say of themselves and not with the library's own writers, which make good files only.

use std::io::{Cursor, Write};

use serde_json::{Map, Value, json};
use xxhash_rust::xxh3::{Xxh3, xxh3_64, xxh3_128};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

/// Bytes of tensors at most: shapes can ask for any number.
const LARGEST: usize = 1 << 16;

/// What a checkpoint begins with.
pub const MAGIC: &[u8] = b"lssvmrun";

/// The key of the texts in a header.
const METADATA: &str = "__metadata__";

/// What a safetensors file of ours holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A model.
    Model,
    /// Data that were converted.
    Data,
}

impl Kind {
    /// The key of the description in the metadata.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Model => "lssvm",
            Kind::Data => "lssvm_data",
        }
    }
}

/// The header, which ends with a line, and what follows.
fn halves(input: &[u8]) -> (&[u8], &[u8]) {
    let end = input.iter().position(|&byte| byte == b'\n');
    match end {
        Some(end) => (&input[..end], &input[end + 1..]),
        None => (input, &[]),
    }
}

fn object(text: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(text).ok()
}

/// A safetensors file. The description may be JSON instead of a text; a tensor without
/// `data_offsets` lies behind the one before, and there are as many bytes as tensors need; the
/// sums of blocks, and the checksum if there is none, are computed.
pub fn container(input: &[u8], kind: Kind) -> Vec<u8> {
    let (text, bytes) = halves(input);
    let Some(mut header) = object(text) else {
        return joined(text, bytes);
    };
    let mut bytes = bytes.to_vec();
    place(&mut header, &mut bytes);
    let texts = header.get_mut(METADATA).and_then(Value::as_object_mut);
    let Some(texts) = texts else {
        return joined(&written(&header), &bytes);
    };
    let description = match texts.remove(kind.key()) {
        Some(Value::String(text)) => text,
        Some(value) => value.to_string(),
        None => return joined(&written(&header), &bytes),
    };
    texts.insert(kind.key().into(), description.clone().into());
    let given = texts.contains_key("checksum");
    let tensors = tensors(&header);
    if kind == Kind::Data {
        sum_blocks(&description, &tensors, &mut bytes);
    }
    if !given {
        let sum = checksum(&description, &tensors, &bytes, kind);
        header[METADATA]["checksum"] = sum.into();
    }
    joined(&written(&header), &bytes)
}

fn written(header: &Map<String, Value>) -> Vec<u8> {
    json!(header).to_string().into_bytes()
}

fn joined(header: &[u8], bytes: &[u8]) -> Vec<u8> {
    // Tensors begin where any number may lie.
    let length = header.len().next_multiple_of(8);
    let mut file = (length as u64).to_le_bytes().to_vec();
    file.extend(header);
    file.resize(8 + length, b' ');
    file.extend(bytes);
    file
}

/// Name, type, shape and place of a tensor.
struct Tensor {
    name: String,
    dtype: String,
    shape: Vec<usize>,
    place: (usize, usize),
}

/// All that are what they should be, in the order of their names.
fn tensors(header: &Map<String, Value>) -> Vec<Tensor> {
    let tensor = |(name, value): (&String, &Value)| {
        let [dtype, shape, place] = ["dtype", "shape", "data_offsets"].map(|key| value.get(key));
        Some(Tensor {
            name: name.clone(),
            dtype: dtype?.as_str()?.to_string(),
            shape: serde_json::from_value(shape?.clone()).ok()?,
            place: serde_json::from_value(place?.clone()).ok()?,
        })
    };
    let mut all: Vec<Tensor> = header.iter().filter_map(tensor).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Gives tensors their places in the order of their names, and the file as many bytes as they
/// need.
fn place(header: &mut Map<String, Value>, bytes: &mut Vec<u8>) {
    let mut end = 0;
    let mut placed = false;
    let mut all: Vec<_> = header
        .iter_mut()
        .filter(|(name, _)| *name != METADATA)
        .collect();
    all.sort_by_key(|(name, _)| *name);
    for (_, value) in all {
        let Some(tensor) = value.as_object_mut() else {
            continue;
        };
        if tensor.contains_key("data_offsets") {
            continue;
        }
        let Some(size) = size(tensor).filter(|size| size + end <= LARGEST) else {
            continue;
        };
        tensor.insert("data_offsets".into(), json!([end, end + size]));
        end += size;
        placed = true;
    }
    if placed {
        bytes.resize(end, 0);
    }
}

/// Bytes of a tensor, if that is not too many.
fn size(tensor: &Map<String, Value>) -> Option<usize> {
    let digits = tensor
        .get("dtype")?
        .as_str()?
        .trim_start_matches(|c: char| c.is_ascii_alphabetic());
    let bits: usize = digits.parse().ok()?;
    let shape: Vec<usize> = serde_json::from_value(tensor.get("shape")?.clone()).ok()?;
    let count = shape.iter().try_fold(1usize, |n, &m| n.checked_mul(m))?;
    let bytes = count.checked_mul(bits)? / 8;
    (bytes <= LARGEST).then_some(bytes)
}

/// Writes the sums of the blocks of features to where they belong.
fn sum_blocks(description: &str, tensors: &[Tensor], bytes: &mut [u8]) {
    let find = |name: &str| tensors.iter().find(|tensor| tensor.name == name);
    let (Some(features), Some(blocks)) = (find("features"), find("blocks")) else {
        return;
    };
    let block = object(description.as_bytes())
        .and_then(|description| description.get("block_bytes")?.as_u64())
        .and_then(|block| usize::try_from(block).ok())
        .filter(|&block| block > 0);
    let features = bytes.get(features.place.0..features.place.1);
    let (Some(block), Some(features)) = (block, features) else {
        return;
    };
    let sums = features
        .chunks(block)
        .flat_map(|part| xxh3_64(part).to_le_bytes());
    let sums: Vec<u8> = sums.collect();
    if let Some(place) = bytes.get_mut(blocks.place.0..blocks.place.1) {
        let length = place.len().min(sums.len());
        place[..length].copy_from_slice(&sums[..length]);
    }
}

/// XXH3 over the description and name, type, shape and bytes of the tensors, each after its
/// length; the bytes of features have sums of their own.
fn checksum(description: &str, tensors: &[Tensor], bytes: &[u8], kind: Kind) -> String {
    let mut hash = Xxh3::new();
    let length = |hash: &mut Xxh3, length: usize| hash.update(&(length as u64).to_le_bytes());
    let part = |hash: &mut Xxh3, text: &str| {
        length(hash, text.len());
        hash.update(text.as_bytes());
    };
    part(&mut hash, description);
    let sparse = tensors.iter().any(|tensor| tensor.name == "support.values");
    let of_model = |name: &str| match name {
        "bias" | "classes" | "weights" => true,
        "support" => !sparse,
        "support.columns" | "support.offsets" | "support.values" => sparse,
        _ => false,
    };
    for tensor in tensors
        .iter()
        .filter(|t| kind == Kind::Data || of_model(&t.name))
    {
        let (from, to) = tensor.place;
        part(&mut hash, &tensor.name);
        part(&mut hash, &tensor.dtype);
        length(&mut hash, tensor.shape.len());
        tensor
            .shape
            .iter()
            .for_each(|&size| length(&mut hash, size));
        length(&mut hash, to.saturating_sub(from));
        if kind == Kind::Model || tensor.name != "features" {
            hash.update(bytes.get(from..to).unwrap_or_default());
        }
    }
    format!("{:032x}", hash.digest128())
}

/// A checkpoint, with these values where the header has none of their name; and whether what it
/// says about its run is one of them.
pub fn checkpoint(input: &[u8], missing: &[(&str, Value)]) -> (Vec<u8>, bool) {
    let (text, tables) = halves(input);
    let (header, ours) = match object(text) {
        None => (text.to_vec(), false),
        Some(mut header) => {
            let ours = !header.contains_key("about");
            for (key, value) in missing {
                header.entry(*key).or_insert_with(|| value.clone());
            }
            (written(&header), ours)
        }
    };
    let mut file = MAGIC.to_vec();
    file.extend((header.len() as u64).to_le_bytes());
    file.extend(header);
    file.extend(tables);
    file.extend(xxh3_128(&file).to_le_bytes());
    (file, ours)
}

/// The value of a key of the header.
pub fn header_text(input: &[u8], key: &str) -> Option<String> {
    let header = object(halves(input).0)?;
    header.get(key)?.as_str().map(String::from)
}

/// A ZIP archive of arrays: each has a line with its name and its length, and then its bytes.
pub fn archive(input: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let mut left = input;
    while !left.is_empty() {
        let (line, rest) = halves(left);
        let line = String::from_utf8_lossy(line);
        let (name, length) = line.split_once(' ').unwrap_or((&line, ""));
        let length = length.parse().unwrap_or(rest.len()).min(rest.len());
        // A name that cannot be is left out.
        if archive
            .start_file(name, SimpleFileOptions::default())
            .is_ok()
        {
            archive.write_all(&rest[..length]).expect("memory");
        }
        left = &rest[length..];
    }
    archive.finish().expect("memory").into_inner()
}

/// What [`container`] makes this file of.
pub fn open_container(file: &[u8], kind: Kind) -> Vec<u8> {
    let (mut header, bytes) = split(file, 0);
    let tensors = tensors(&header);
    for tensor in &tensors {
        let told = header[&tensor.name].as_object_mut().expect("a tensor");
        told.remove("data_offsets");
    }
    let texts = header[METADATA].as_object_mut().expect("texts");
    texts.remove("checksum");
    let description = texts[kind.key()].as_str().expect("a text");
    texts[kind.key()] = serde_json::from_str(description).expect("JSON");
    let mut input = written(&header);
    input.push(b'\n');
    for Tensor { place, .. } in tensors {
        input.extend(&bytes[place.0..place.1]);
    }
    input
}

/// What [`checkpoint`] makes this file of, if it puts in the rest.
pub fn open_checkpoint(file: &[u8], method: &str) -> Vec<u8> {
    let (mut header, bytes) = split(file, MAGIC.len());
    header.retain(|key, _| key == "tables");
    header.insert("method".into(), method.into());
    let mut input = written(&header);
    input.push(b'\n');
    input.extend(&bytes[..bytes.len() - size_of::<u128>()]);
    input
}

/// The header of a good file, whose length stands at `at`, and what follows it.
pub fn split(file: &[u8], at: usize) -> (Map<String, Value>, &[u8]) {
    let (length, rest) = file[at..].split_first_chunk().expect("a length");
    let (header, bytes) = rest.split_at(u64::from_le_bytes(*length) as usize);
    (object(header).expect("a header"), bytes)
}
