//! Mutated conversations: in whatever pieces they arrive, the same is heard, and never more is kept than a line may have.

use latido_fuzz::fuzz;

use super::*;

/// What is heard of a conversation that arrives in pieces of this many bytes.
fn heard(bytes: &[u8], piece: usize) -> Vec<String> {
    let (stream, _other) = UnixStream::pair().unwrap();
    let mut client = Client::new(stream, Duration::ZERO);
    let mut said = Vec::new();
    for piece in bytes.chunks(piece) {
        if client.is_heard() {
            client.received.extend_from_slice(piece);
            client.take_lines(&mut said);
        }
        assert!(client.received.len() <= LINE_MAX, "{} bytes are kept", client.received.len());
    }
    let words = said.into_iter().map(|said| match said {
        Said::Request(request) => format!("{request:?}"),
        Said::Rubbish(why) => {
            assert!(why.len() > "read the request: ".len(), "it has no cause");
            why
        }
    });
    words.collect()
}

#[test]
fn fuzz_control_lines() {
    let words =
        ["\n", "{}\n", "{\"type\":\"status\"}\n", "null", "\"token\":\"t\"", "\r\n", "\0", "{\"type\":\"watch\"}"];
    fuzz("control-lines", &words, |bytes| {
        let heard_in = |piece| heard(bytes, piece);
        let whole = heard_in(CHUNK);
        for piece in [16 + bytes.len() % 7, 4 * LINE_MAX] {
            assert_eq!(heard_in(piece), whole, "in pieces of {piece} bytes");
        }
        let rubbish = whole.iter().filter(|said| said.starts_with("read the request")).count();
        format!("{} {}", whole.len().min(4), rubbish.min(3))
    });
}
