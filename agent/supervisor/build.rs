//! Links the release binary at a fixed address.
//!
//! A position-independent program has its tables of pointers rewritten by the loader at each start, which makes private
//! memory of them: some 30 KiB for every supervisor. At a fixed address they are shared by all.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
