package engine

import (
	"context"
	"time"
)

// Image is one image that cellmux has made.
type Image struct {
	Reference string
	ID        string
	Stack     string // stack tag; "" for one that carries no cell
	Size      string // as the engine prints it
	Created   time.Time
	InUse     bool // by a guest, running or not
}

// Images is an engine whose guests are made from images.
type Images interface {
	// BuildImage builds or fetches the image of a cell, also when it is there
	// already, and returns its reference. It blocks for minutes, reports each
	// step, and ends with ctx. progress may be nil.
	BuildImage(ctx context.Context, c Cell, progress func(Progress)) (string, error)
	// Images lists the images that cellmux has made, newest first.
	Images(ctx context.Context) ([]Image, error)
	// PruneImages removes those that no guest needs, and returns them.
	PruneImages(ctx context.Context) ([]Image, error)
	// ImageFiles are the files of a project that decide its image once the user
	// has approved them: path and hash of the content. nil where it has none.
	ImageFiles(c Cell) map[string]string
}
