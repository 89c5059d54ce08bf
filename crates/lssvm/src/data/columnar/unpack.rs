//! Unpacking a page of a Parquet file to the size that its head says, and no further: a
//! few bytes can unpack to more than any machine has.

use std::io::Read;

use flate2::read::MultiGzDecoder;
use parquet::basic::Compression;

/// No page packed by Snappy or LZ4 grows by more than this factor.
const MAX_GROWTH: usize = 256;

/// Bytes that brotli reads at once.
const BROTLI_BUFFER: usize = 4096;

/// The content of a page, which must have just this size; or what is wrong.
pub(super) fn unpack(codec: Compression, packed: &[u8], size: usize) -> Result<Vec<u8>, String> {
    let too_large = size > packed.len().saturating_mul(MAX_GROWTH);
    let content = match codec {
        Compression::SNAPPY | Compression::LZ4_RAW if too_large => {
            return Err(format!(
                "{} bytes cannot unpack to {size}, as its head says",
                packed.len()
            ));
        }
        Compression::UNCOMPRESSED => packed.to_vec(),
        Compression::SNAPPY => {
            let mut content = vec![0; size];
            let done = snap::raw::Decoder::new().decompress(packed, &mut content);
            let length = done.map_err(|error| error.to_string())?;
            content.truncate(length);
            content
        }
        Compression::LZ4_RAW => {
            let mut content = vec![0; size];
            let done = lz4_flex::block::decompress_into(packed, &mut content);
            let length = done.map_err(|error| error.to_string())?;
            content.truncate(length);
            content
        }
        Compression::GZIP(_) => read(MultiGzDecoder::new(packed), size)?,
        Compression::BROTLI(_) => read(brotli::Decompressor::new(packed, BROTLI_BUFFER), size)?,
        Compression::ZSTD(_) => {
            let decoder = zstd::stream::read::Decoder::new(packed);
            read(decoder.map_err(|error| error.to_string())?, size)?
        }
        Compression::LZ4 | Compression::LZO => {
            return Err(format!(
                "it is packed by {codec}, which is not read; write it with zstd or snappy"
            ));
        }
    };
    match content.len() == size {
        true => Ok(content),
        false => Err(format!(
            "it unpacks to {} bytes or more, and its head says {size}",
            content.len()
        )),
    }
}

/// What can be read, but one byte more than `size` at most.
fn read(reader: impl Read, size: usize) -> Result<Vec<u8>, String> {
    let mut content = Vec::new();
    let done = reader.take(size as u64 + 1).read_to_end(&mut content);
    done.map(|_| content).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A page that unpacks to a megabyte of zeros, by each packer.
    fn bombs() -> Vec<(Compression, Vec<u8>)> {
        let zeros = vec![0; 1 << 20];
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&zeros).unwrap();
        let mut brotli = Vec::new();
        let mut writer = brotli::CompressorWriter::new(&mut brotli, 4096, 5, 20);
        writer.write_all(&zeros).unwrap();
        drop(writer);
        vec![
            (
                Compression::GZIP(Default::default()),
                gzip.finish().unwrap(),
            ),
            (Compression::BROTLI(Default::default()), brotli),
            (
                Compression::ZSTD(Default::default()),
                zstd::bulk::compress(&zeros, 3).unwrap(),
            ),
            (
                Compression::SNAPPY,
                snap::raw::Encoder::new().compress_vec(&zeros).unwrap(),
            ),
            (Compression::LZ4_RAW, lz4_flex::block::compress(&zeros)),
        ]
    }

    #[test]
    fn a_page_has_the_size_that_its_head_says() {
        for (codec, packed) in bombs() {
            assert!(packed.len() < 60_000, "{codec}");
            assert_eq!(unpack(codec, &packed, 1 << 20).unwrap(), vec![0; 1 << 20]);
            for size in [0, 1000, (1 << 20) - 1, (1 << 20) + 1, u32::MAX as usize] {
                assert!(unpack(codec, &packed, size).is_err(), "{codec}, {size}");
            }
            assert!(unpack(codec, &packed[..packed.len() / 2], 1 << 20).is_err());
        }
    }

    #[test]
    fn what_is_not_read_is_named() {
        let message = unpack(Compression::LZ4, &[1, 2, 3], 3).unwrap_err();
        assert!(message.contains("write it with zstd"), "{message}");
    }
}
