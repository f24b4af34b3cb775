//! Counts the memory that a thread holds, through the allocator of the test binary.

#![expect(
    unsafe_code,
    reason = "an allocator is asked through unsafe functions; this one passes everything on and counts"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static HIGHEST: Cell<usize> = const { Cell::new(0) };
}

/// Forgets the highest count of this thread; returns what it holds.
pub(crate) fn begin() -> usize {
    let held = HELD.get();
    HIGHEST.set(held);
    held
}

/// The most that this thread held since then.
pub(crate) fn highest() -> usize {
    HIGHEST.get()
}

fn took(bytes: usize) {
    // A thread that ends has no counters any more, and nothing that is measured.
    let _ = HELD.try_with(|held| {
        held.set(held.get().saturating_add(bytes));
        HIGHEST.set(HIGHEST.get().max(held.get()));
    });
}

fn gave_back(bytes: usize) {
    // What another thread took may be given back here: the count stays above what is held, never below zero.
    let _ = HELD.try_with(|held| held.set(held.get().saturating_sub(bytes)));
}

// SAFETY: every call is passed on as it came; counting touches memory of its own alone and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        took(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        gave_back(layout.size());
        took(size);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        gave_back(layout.size());
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }
}
