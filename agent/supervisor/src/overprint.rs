//! Lines that are printed over: of progress that is shown with carriage returns, the log keeps the last state.
//!
//! What stands in a line before a carriage return was printed over by what comes after it, unless the line ends there
//! (`\\r\\n`). It is dropped; what was printed since is held back until the line ends, until it is known to last, or until
//! nothing more comes. A line without carriage returns is never held back, and output that is not text is not touched: from
//! its first byte that no terminal prints on, everything is kept.

use memchr::{memchr, memrchr};

/// Bytes of one line that are held back. A longer state is written as it comes.
const HELD_MAX: usize = 64 * 1024;

/// Drops what was printed over.
#[derive(Default)]
pub(crate) struct Overprint {
    /// the end of the last line, which is being printed over or may be
    held: Vec<u8>,
    /// something of the last line was written
    is_begun: bool,
    is_binary: bool,
}

impl Overprint {
    /// Takes the next bytes and hands on what is to be written.
    pub(crate) fn take(&mut self, bytes: &[u8], write: &mut dyn FnMut(&[u8])) {
        let is_plain = self.held.is_empty() && memchr(b'\r', bytes).is_none();
        if is_plain || self.is_binary {
            self.is_begun = bytes.last().map_or(self.is_begun, |last| *last != b'\n');
            return write(bytes);
        }
        if bytes.iter().any(|byte| is_of_no_text(*byte)) {
            self.finish(write);
            self.is_binary = true;
            return write(bytes);
        }
        let was_held = !self.held.is_empty();
        let mut data = std::mem::take(&mut self.held);
        data.extend_from_slice(bytes);
        let rest = self.drop_overprinted(&data, was_held, write);
        data.drain(..data.len() - rest);
        self.held = data;
        if self.held.len() > HELD_MAX {
            self.finish(write);
        }
    }

    /// Writes what lasts of the data; returns how many bytes at its end are held back.
    fn drop_overprinted(&mut self, data: &[u8], was_held: bool, write: &mut dyn FnMut(&[u8])) -> usize {
        let (mut from, mut at, mut is_over) = (0, 0, was_held);
        while let Some(found) = memchr(b'\r', &data[at..]).map(|offset| at + offset) {
            let after = data[found..].iter().position(|byte| *byte != b'\r').map(|count| found + count);
            // At the end of the data it is not known what it does.
            let Some(after) = after else { break };
            at = after;
            if data[after] == b'\n' {
                continue;
            }
            if let Some(end) = memrchr(b'\n', &data[from..found]) {
                write(&data[from..=from + end]);
                self.is_begun = false;
            }
            is_over = true;
            // One that returns over what is in the log already is kept.
            from = if self.is_begun { after - 1 } else { after };
        }
        let line = memrchr(b'\n', &data[from..]).map_or(from, |end| from + end + 1);
        if line > from {
            write(&data[from..line]);
            (self.is_begun, is_over) = (false, false);
        }
        if is_over || data.last() == Some(&b'\r') {
            return data.len() - line;
        }
        if line < data.len() {
            write(&data[line..]);
            self.is_begun = true;
        }
        0
    }

    /// Writes how far the held line is, for those who look into the log meanwhile.
    pub(crate) fn settle(&mut self, write: &mut dyn FnMut(&[u8])) {
        let text = self.held.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1);
        if text > 0 {
            write(&self.held[..text]);
            self.is_begun = true;
            self.held.drain(..text);
        }
    }

    /// Writes all that is held.
    pub(crate) fn finish(&mut self, write: &mut dyn FnMut(&[u8])) {
        if !self.held.is_empty() {
            write(&self.held);
            self.is_begun = true;
            self.held = Vec::new();
        }
    }
}

/// Control characters but those that text for terminals has: backspace, tab, line feed, form feed, carriage return, escape.
fn is_of_no_text(byte: u8) -> bool {
    byte < 0x20 && !matches!(byte, 0x07..=0x0a | 0x0c | b'\r' | 0x1b)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is written if the text comes in pieces of this size.
    fn written(text: &[u8], piece: usize) -> Vec<u8> {
        let (mut overprint, mut out) = (Overprint::default(), Vec::new());
        for piece in text.chunks(piece) {
            overprint.take(piece, &mut |bytes| out.extend_from_slice(bytes));
        }
        overprint.finish(&mut |bytes| out.extend_from_slice(bytes));
        out
    }

    /// What a terminal shows in the end, for texts of which each state of a line is no shorter than the one before.
    fn shown(text: &[u8]) -> Vec<Vec<u8>> {
        let line = |line: &[u8]| {
            let line = &line[..line.iter().rposition(|byte| *byte != b'\r').map_or(0, |last| last + 1)];
            line.rsplit(|byte| *byte == b'\r').next().unwrap_or_default().to_vec()
        };
        text.split(|byte| *byte == b'\n').map(line).collect()
    }

    #[test]
    fn only_the_last_state_of_a_line_is_kept() {
        for (text, kept) in [
            (&b"0%\r50%\r100%\ndone\n"[..], &b"100%\ndone\n"[..]),
            (b"\r0%\r50%\r100%\r\nnext", b"100%\r\nnext"),
            (b"a\r\nb\r\n", b"a\r\nb\r\n"),
            (b"a\r\r\nb\n", b"a\r\r\nb\n"),
            (b"20%\r", b"20%\r"),
            (b"x\ny\rz", b"x\nz"),
            (b"plain", b"plain"),
        ] {
            assert_eq!(written(text, text.len()), kept, "{:?}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn a_terminal_shows_the_same_however_the_bytes_come() {
        let text = b"one\r\n 0%\r10%\r20%\r30%\r\ntwo\n\r1/9\r2/9\r3/9\nthree\r\nfour\r";
        for piece in 1..=text.len() {
            assert_eq!(shown(&written(text, piece)), shown(text), "pieces of {piece}");
        }
    }

    #[test]
    fn a_line_without_a_carriage_return_is_not_held_back() {
        let (mut overprint, mut out) = (Overprint::default(), Vec::new());
        overprint.take(b"Password: ", &mut |bytes| out.extend_from_slice(bytes));
        assert_eq!(out, b"Password: ");
    }

    #[test]
    fn a_state_that_lasts_is_written_and_printed_over_later() {
        let (mut overprint, mut out) = (Overprint::default(), Vec::new());
        let mut write = |bytes: &[u8]| out.extend_from_slice(bytes);
        overprint.take(b"10%\r20%\r", &mut write);
        overprint.settle(&mut write);
        overprint.settle(&mut write);
        overprint.take(b"30%\r40%\r", &mut write);
        overprint.take(b"50%\n", &mut write);
        assert_eq!(out, b"20%\r50%\n");
    }

    #[test]
    fn a_gigabyte_of_updates_would_leave_a_line() {
        let updates: Vec<u8> = (0..100_000).flat_map(|n| format!("\r{n} of 100000").into_bytes()).collect();
        assert_eq!(written(&updates, 4096).len(), "99999 of 100000".len());
        let endless = [b"\r".as_slice(), &vec![b'x'; 10 * HELD_MAX]].concat();
        assert_eq!(written(&endless, 4096).len(), 10 * HELD_MAX, "a line of any length is kept whole");
    }

    #[test]
    fn what_is_no_text_is_kept_byte_for_byte() {
        let text: Vec<u8> = (0..=255_u8).cycle().take(5000).collect();
        assert_eq!(written(&text, 1000), text);
    }
}
