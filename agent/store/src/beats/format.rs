//! How beats lie in a file: a header, then batches, each behind its length and checksums. All numbers are little-endian.
//!
//! ```text
//! header  magic 8 · version 4 · journal id 32 · checksum 4
//! batch   payload bytes 4 · payload checksum 4 · checksum of these two 4 · payload
//! payload beats, one behind the other
//! beat    epoch 8 · heard_ms 8 · sequence 8 · at_ms 8 · errors 8 · state bytes 4 · active job bytes 4 · both texts
//! ```
//!
//! A length has a checksum of its own, so that a length that is rubbish is not taken for a file that ends too early.

use super::Beat;
use crate::error::StoreError;

const MAGIC: &[u8; 8] = b"latibeat";
/// The version that this program writes, and the newest that it reads.
pub(super) const VERSION: u32 = 1;
/// Bytes of a journal's id, which names the database that a file belongs to.
const ID_BYTES: usize = 32;
/// Bytes of a file's header.
pub(super) const HEADER_BYTES: usize = 8 + 4 + ID_BYTES + 4;
/// Bytes before a batch's payload.
pub(super) const FRAME_BYTES: usize = 12;
/// A wall time that is not known, and a text that is not there.
const NO_TIME: u64 = u64::MAX;
const NO_TEXT: u32 = u32::MAX;

/// What the header of a file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// It is a file of this database.
    Own,
    /// A newer latido has written it.
    Newer(u32),
    /// It belongs to another database, or is no file of beats at all.
    Foreign,
}

fn id_bytes(journal_id: &str) -> [u8; ID_BYTES] {
    let mut bytes = [0; ID_BYTES];
    bytes.iter_mut().zip(journal_id.bytes()).for_each(|(byte, of_id)| *byte = of_id);
    bytes
}

pub(super) fn put_header(out: &mut Vec<u8>, journal_id: &str) {
    let start = out.len();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&id_bytes(journal_id));
    let checksum = crc32fast::hash(&out[start..]);
    out.extend_from_slice(&checksum.to_le_bytes());
}

pub(super) fn read_header(bytes: &[u8; HEADER_BYTES], journal_id: &str) -> Header {
    let mut fields = Fields(bytes);
    let magic = fields.take(MAGIC.len());
    let version = fields.word();
    if magic != Some(MAGIC) {
        return Header::Foreign;
    }
    // The rest of a newer header may be anything.
    if let Some(version) = version.filter(|version| *version > VERSION) {
        return Header::Newer(version);
    }
    let id = fields.take(ID_BYTES);
    let is_whole = fields.word() == Some(crc32fast::hash(&bytes[..HEADER_BYTES - 4]));
    if is_whole && id == Some(&id_bytes(journal_id)) { Header::Own } else { Header::Foreign }
}

/// Appends a batch.
///
/// # Errors
/// The batch, or one of its texts, is longer than four gigabytes.
pub(super) fn put_batch(out: &mut Vec<u8>, beats: &[Beat<'_>]) -> Result<(), StoreError> {
    let frame = out.len();
    out.extend_from_slice(&[0; FRAME_BYTES]);
    for beat in beats {
        put_beat(out, beat)?;
    }
    let payload = &out[frame + FRAME_BYTES..];
    let (length, checksum) = (length(payload.len())?, crc32fast::hash(payload));
    let head = [length.to_le_bytes(), checksum.to_le_bytes()].concat();
    out[frame..frame + 8].copy_from_slice(&head);
    out[frame + 8..frame + FRAME_BYTES].copy_from_slice(&crc32fast::hash(&head).to_le_bytes());
    Ok(())
}

fn put_beat(out: &mut Vec<u8>, beat: &Beat<'_>) -> Result<(), StoreError> {
    let Beat { name: _, epoch, at_ms, heard_ms, sequence, state, active_job, errors } = beat;
    for number in [*epoch, *heard_ms, *sequence, at_ms.unwrap_or(NO_TIME), *errors] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    for text in [state, active_job] {
        let bytes = text.map_or(Ok(NO_TEXT), |text| length(text.len()))?;
        out.extend_from_slice(&bytes.to_le_bytes());
    }
    [state, active_job].into_iter().flatten().for_each(|text| out.extend_from_slice(text.as_bytes()));
    Ok(())
}

fn length(bytes: usize) -> Result<u32, StoreError> {
    let fits = u32::try_from(bytes).ok().filter(|bytes| *bytes != NO_TEXT);
    fits.ok_or(StoreError::TooLarge { field: "bytes of beats", value: bytes as u64 })
}

/// The frame of a batch: bytes and checksum of its payload; `None` if it is rubbish.
pub(super) fn read_frame(bytes: &[u8; FRAME_BYTES]) -> Option<(u32, u32)> {
    let mut fields = Fields(bytes);
    let (length, checksum, own) = (fields.word()?, fields.word()?, fields.word()?);
    (own == crc32fast::hash(&bytes[..8])).then_some((length, checksum))
}

/// Gives the beats of a payload to `each`. Answers whether it is made of whole beats.
pub(super) fn read_beats(payload: &[u8], mut each: impl FnMut(Beat<'_>)) -> bool {
    let mut fields = Fields(payload);
    while !fields.0.is_empty() {
        let Some(beat) = fields.beat() else { return false };
        each(beat);
    }
    true
}

/// What is left to be read.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn number(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn text(&mut self, bytes: u32) -> Option<Option<&'a str>> {
        if bytes == NO_TEXT {
            return Some(None);
        }
        std::str::from_utf8(self.take(usize::try_from(bytes).ok()?)?).ok().map(Some)
    }

    fn beat(&mut self) -> Option<Beat<'a>> {
        let (epoch, heard_ms, sequence) = (self.number()?, self.number()?, self.number()?);
        let (at_ms, errors) = (self.number()?, self.number()?);
        let (state, active_job) = (self.word()?, self.word()?);
        let (state, active_job) = (self.text(state)?, self.text(active_job)?);
        let at_ms = (at_ms != NO_TIME).then_some(at_ms);
        Some(Beat { name: "", epoch, at_ms, heard_ms, sequence, state, active_job, errors })
    }
}
