//! Makes bytes harmless for a terminal: text and colours pass, whatever else would move, hide or answer is shown as text.

/// The longest colour escape that passes; what is longer is shown as text.
const COLOUR_MAX: usize = 64;

/// A filter over a stream of bytes that may be cut anywhere.
#[derive(Debug, Default)]
pub(crate) struct Harmless {
    /// the beginning of a character or of an escape whose end has not come yet
    pending: Vec<u8>,
}

/// What the beginning of the bytes is.
enum Piece {
    /// These bytes pass as they are.
    Passes(usize),
    /// These bytes are shown in another way.
    Shown(usize, String),
    /// The end has not come yet.
    Incomplete,
}

impl Harmless {
    /// Filters what came; an unfinished character or escape at the end is kept for the next call.
    pub(crate) fn filter(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut input = std::mem::take(&mut self.pending);
        input.extend_from_slice(bytes);
        let mut output = Vec::with_capacity(input.len());
        let mut rest = input.as_slice();
        while !rest.is_empty() {
            match piece(rest) {
                Piece::Passes(length) => {
                    output.extend_from_slice(&rest[..length]);
                    rest = &rest[length..];
                }
                Piece::Shown(length, text) => {
                    output.extend_from_slice(text.as_bytes());
                    rest = &rest[length..];
                }
                Piece::Incomplete => {
                    self.pending = rest.to_vec();
                    break;
                }
            }
        }
        output
    }

    /// What was kept and never ended.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let pending = std::mem::take(&mut self.pending);
        String::from_utf8_lossy(&pending).replace('\u{1b}', "^[").into_bytes()
    }
}

fn piece(bytes: &[u8]) -> Piece {
    match bytes[0] {
        0x1b => escape(bytes),
        b'\n' | b'\r' | b'\t' | 0x20..=0x7e => Piece::Passes(1),
        control @ (0..=0x1f | 0x7f) => Piece::Shown(1, format!("^{}", char::from(control ^ 0x40))),
        0x80..=0xff => character(bytes),
    }
}

/// `ESC [ digits and semicolons m`: a colour.
fn escape(bytes: &[u8]) -> Piece {
    let shown = || Piece::Shown(1, "^[".to_owned());
    match bytes.get(1) {
        None => return Piece::Incomplete,
        Some(b'[') => {}
        Some(_) => return shown(),
    }
    let parameters = &bytes[2..];
    match parameters.iter().position(|byte| !matches!(byte, b'0'..=b'9' | b';' | b':')) {
        Some(at) if parameters[at] == b'm' && at < COLOUR_MAX => Piece::Passes(at + 3),
        Some(_) => shown(),
        None if parameters.len() >= COLOUR_MAX => shown(),
        None => Piece::Incomplete,
    }
}

/// One character outside ASCII; what is none, and the controls among them, become the replacement character.
fn character(bytes: &[u8]) -> Piece {
    let replaced = |length| Piece::Shown(length, char::REPLACEMENT_CHARACTER.to_string());
    let head = &bytes[..bytes.len().min(4)];
    match std::str::from_utf8(head) {
        Ok(text) => first(text, replaced),
        Err(error) if error.valid_up_to() > 0 => {
            first(std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(), replaced)
        }
        Err(error) => match error.error_len() {
            Some(length) => replaced(length),
            None => Piece::Incomplete,
        },
    }
}

fn first(text: &str, replaced: impl Fn(usize) -> Piece) -> Piece {
    match text.chars().next() {
        Some(c) if c.is_control() || is_direction(c) => replaced(c.len_utf8()),
        Some(c) => Piece::Passes(c.len_utf8()),
        None => Piece::Incomplete,
    }
}

/// Characters that turn the direction of what follows, by which a text can be made to read as another.
fn is_direction(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(bytes: &[u8]) -> String {
        let mut filter = Harmless::default();
        let mut output = filter.filter(bytes);
        output.extend(filter.finish());
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn text_and_colours_pass_and_commands_to_the_terminal_do_not() {
        for text in ["plain\r\n\ttab", "\x1b[1;31mred\x1b[0m", "ñandú 🦀 €", "\x1b[38;5;200mx"] {
            assert_eq!(whole(text.as_bytes()), text);
        }
        assert_eq!(whole(b"\x1b[2J\x1b]0;title\x07"), "^[[2J^[]0;title^G");
        assert_eq!(whole(b"\x1b[6n"), "^[[6n");
        assert_eq!(whole("\u{9b}2J".as_bytes()), "\u{fffd}2J");
        assert_eq!(whole("a\u{202e}b".as_bytes()), "a\u{fffd}b");
    }

    /// Field case C172 (OpenJobDescription/openjd-adaptor-runtime-for-python#274): text views show replacements.
    #[test]
    fn c172_bytes_that_are_not_text_become_replacement_characters() {
        assert_eq!(whole(b"a\xffb\xc3("), "a\u{fffd}b\u{fffd}(");
        assert_eq!(whole(b"\xe2\x82"), "\u{fffd}");
    }

    #[test]
    fn a_cut_anywhere_changes_nothing() {
        let text = "é\x1b[31m€\x1b[2J🦀\x07\u{9b}".as_bytes();
        for cut in 0..=text.len() {
            let mut filter = Harmless::default();
            let mut output = filter.filter(&text[..cut]);
            output.extend(filter.filter(&text[cut..]));
            output.extend(filter.finish());
            assert_eq!(String::from_utf8(output).unwrap(), whole(text), "cut at {cut}");
        }
    }
}
