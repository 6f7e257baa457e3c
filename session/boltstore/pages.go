package boltstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	bolt "go.etcd.io/bbolt"
)

// The layout of a page in a bbolt file: a header of id (8 bytes), flags (2), count (2) and overflow (4), followed by the
// elements. An element of a branch is position (4), key size (4) and page (8); an element of a leaf is flags (4), position
// (4), key size (4) and value size (4). A position is relative to the start of its element.
const (
	headerSize  = 16
	elementSize = 16

	branchPage = 0x01
	leafPage   = 0x02

	bucketElement = 0x01 // flag of a leaf element that is a bucket
	bucketSize    = 16   // size of a bucket's header, with which such an element's value begins

	maxDepth = 64 // levels of a tree
)

// pageChecker checks the trees of a file without bbolt, which trusts the file: a page that refers back to itself would
// end the process.
type pageChecker struct {
	file   io.ReaderAt
	size   int64           // of a page
	high   uint64          // number of pages that the file uses
	leaves bool            // check the leaves too, which reads the whole file
	flags  uint32          // expected flags of leaf elements: bucketElement in the list of buckets, 0 in a bucket
	seen   map[uint64]bool // pages
	report func(error)
}

// checkTrees checks the list of buckets and the tree of each bucket, and reports damage. A new file has no buckets yet.
func checkTrees(tx *bolt.Tx, file io.ReaderAt, leaves bool, report func(error)) {
	size := int64(tx.DB().Info().PageSize)
	p := &pageChecker{
		file: file, size: size, high: uint64(tx.Size() / size), leaves: leaves, seen: map[uint64]bool{}, //nolint:gosec // a size
	}
	p.report = func(err error) { report(fmt.Errorf("the list of buckets: %w", err)) }
	p.flags = bucketElement
	p.walk(uint64(tx.Cursor().Bucket().Root()), 0)
	if len(p.seen) == 0 {
		return
	}
	p.flags = 0
	for _, b := range buckets {
		p.report = func(err error) { report(fmt.Errorf("%s: %w", b, err)) }
		found := tx.Bucket(b.name())
		if found != nil && found.Root() != 0 { // with 0, the bucket is inside its parent's page
			p.walk(uint64(found.Root()), 0)
		}
	}
}

// walk checks a page and those below it.
func (p *pageChecker) walk(id uint64, depth int) {
	switch {
	case id < 2 || id >= p.high:
		p.report(fmt.Errorf("page %d is not in the file", id))
		return
	case p.seen[id]:
		p.report(fmt.Errorf("page %d is used twice", id))
		return
	case depth > maxDepth:
		p.report(fmt.Errorf("page %d is too deep", id))
		return
	}
	p.seen[id] = true
	page, leaf, count, err := p.read(id)
	var children []uint64
	if err == nil {
		children, err = p.elements(page, leaf, count)
	}
	if err != nil {
		p.report(fmt.Errorf("page %d: %w", id, err))
	}
	if !p.leaves && len(children) > 0 {
		if _, areLeaves, _, err := p.read(children[0]); err == nil && areLeaves {
			return // the tree is balanced, so the other children are leaves too
		}
	}
	for _, child := range children {
		p.walk(child, depth+1)
	}
}

// read reads a page with its overflow pages.
func (p *pageChecker) read(id uint64) (page []byte, leaf bool, count int, err error) {
	header := make([]byte, headerSize)
	if _, err := p.file.ReadAt(header, int64(id)*p.size); err != nil { //nolint:gosec // below high
		return nil, false, 0, err
	}
	flags, count := binary.NativeEndian.Uint16(header[8:]), int(binary.NativeEndian.Uint16(header[10:]))
	overflow := uint64(binary.NativeEndian.Uint32(header[12:]))
	switch {
	case binary.NativeEndian.Uint64(header) != id:
		return nil, false, 0, fmt.Errorf("its header has the number %d", binary.NativeEndian.Uint64(header))
	case flags != branchPage && flags != leafPage:
		return nil, false, 0, fmt.Errorf("it is neither branch nor leaf (flags %#x)", flags)
	case id+overflow >= p.high:
		return nil, false, 0, errors.New("it extends beyond the file")
	}
	page = make([]byte, int64(1+overflow)*p.size) //nolint:gosec // within the file
	if len(page) < headerSize+count*elementSize {
		return nil, false, 0, fmt.Errorf("it is too small for its %d elements", count)
	}
	if _, err = p.file.ReadAt(page, int64(id)*p.size); err != nil { //nolint:gosec // below high
		return nil, false, 0, err
	}
	return page, flags == leafPage, count, nil
}

// elements checks a page's elements and returns the pages below a branch.
func (p *pageChecker) elements(page []byte, leaf bool, count int) (children []uint64, err error) {
	if !leaf && count == 0 {
		return nil, errors.New("it is a branch without children")
	}
	var last []byte
	for i := range count {
		at := headerSize + i*elementSize
		field := func(n int) uint32 { return binary.NativeEndian.Uint32(page[at+n:]) }
		position, size, value := field(0), field(4), uint32(0)
		if leaf {
			position, size, value = field(4), field(8), field(12)
		} else {
			children = append(children, binary.NativeEndian.Uint64(page[at+8:]))
		}
		from := uint64(at) + uint64(position) // in a page
		if from+uint64(size)+uint64(value) > uint64(len(page)) {
			return nil, errors.New("an element extends beyond it")
		}
		key := page[from:][:size]
		switch {
		case i > 0 && bytes.Compare(key, last) <= 0:
			return nil, errors.New("its keys are not in order")
		case leaf && field(0) != p.flags:
			return nil, fmt.Errorf("an element has the flags %#x, not %#x", field(0), p.flags)
		case leaf && p.flags == bucketElement && value < bucketSize:
			return nil, errors.New("a bucket is too short")
		}
		last = key
	}
	return children, nil
}
