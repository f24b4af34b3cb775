// Package runtime is what the generated bindings of a plugin need to exchange memory with the host. Written by
// `latido plugin build`.
package runtime

import (
	"runtime"
	"unsafe"
)

// Every alignment of the component model divides that of a word.
const word = 8

// What the host wrote into the plugin's memory stays where it is until the bindings have read it.
var received runtime.Pinner

// Whether Go's own allocator works. The component asks for memory once before, while it is set up.
var isReady bool

func init() { isReady = true }

// Allocate makes room that stays where it is until the pinner lets it go.
func Allocate(pinner *runtime.Pinner, size, _ uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	room := unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+word-1)/word)))
	pinner.Pin(room)
	return room
}

// Unpin lets go of what the host wrote for a call.
func Unpin() { received.Unpin() }

// What the allocator itself takes memory from.
//
//go:linkname take runtime.sbrk
func take(size uintptr) unsafe.Pointer

// The host asks for room for arguments and answers with it. Nothing is ever made larger.
//
//go:wasmexport cabi_realloc
func reallocate(old unsafe.Pointer, oldSize, alignment, size uintptr) unsafe.Pointer {
	if old != nil || oldSize != 0 {
		panic("the host asks to make room larger, which it has no reason to do")
	}
	if isReady {
		return Allocate(&received, size, alignment)
	}
	start := uintptr(take(size + word))
	return unsafe.Pointer((start + word - 1) &^ (word - 1))
}
