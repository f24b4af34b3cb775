//! What the built binary is made of.

#[test]
fn the_binary_links_neither_tokio_nor_wasmtime() {
    let binary = std::fs::read(env!("CARGO_BIN_EXE_latido-supervisor")).unwrap();
    assert!(binary.starts_with(b"\x7fELF"));
    let holds = |word: &[u8]| binary.windows(word.len()).any(|window| window == word);
    assert!(holds(b"latido"), "the search finds what is there");
    for word in [&b"tokio"[..], b"wasmtime", b"cranelift", b"rusqlite"] {
        assert!(!holds(word), "{}", String::from_utf8_lossy(word));
    }
}
