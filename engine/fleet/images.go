package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"cellmux/engine"
)

// images is the engine that makes images; "" is the first one that does.
func (f *Fleet) images(kind string) (engine.Images, error) {
	for _, e := range f.o.Engines {
		if maker, can := e.(engine.Images); can && (kind == "" || kind == string(e.Kind())) {
			return maker, nil
		}
	}
	if kind == "" {
		return nil, errors.New("no engine of this cellmux makes images")
	}
	return nil, fmt.Errorf("engine %s makes no images", kind)
}

// BuildImage builds or fetches the image of a cell and returns its reference.
func (f *Fleet) BuildImage(ctx context.Context, cell string, progress func(engine.Progress)) (string, error) {
	c, err := f.cell(ctx, cell)
	if err != nil {
		return "", err
	}
	maker, err := f.images(c.Engine)
	if err != nil {
		return "", err
	}
	working, show, done := f.work.begin(ctx, c.Name, "building the image of "+c.Name, f.o.Now(), f.poke)
	defer done()
	reference, err := maker.BuildImage(working, f.engineCell(ctx, c), func(p engine.Progress) {
		show(p)
		if progress != nil {
			progress(p)
		}
	})
	return reference, f.did("build the image of "+c.Name, err)
}

// Images lists the images that cellmux has made.
func (f *Fleet) Images(ctx context.Context) ([]engine.Image, error) {
	maker, err := f.images("")
	if err != nil {
		return nil, err
	}
	return maker.Images(ctx)
}

// PruneImages removes the images that no cell needs, and returns them.
func (f *Fleet) PruneImages(ctx context.Context) ([]engine.Image, error) {
	maker, err := f.images("")
	if err != nil {
		return nil, err
	}
	removed, err := maker.PruneImages(ctx)
	return removed, f.did(fmt.Sprintf("remove %d images", len(removed)), err)
}

// ImageFiles are the files of a cell's project that decide its image once they
// are approved, with the hashes of their content.
func (f *Fleet) ImageFiles(ctx context.Context, cell string) (map[string]string, error) {
	c, err := f.cell(ctx, cell)
	if err != nil {
		return nil, err
	}
	maker, err := f.images(c.Engine)
	if err != nil {
		return nil, err
	}
	return maker.ImageFiles(f.engineCell(ctx, c)), nil
}

// ApproveImageFiles approves files as ImageFiles gave them: the content that was
// shown, and no later one.
func (f *Fleet) ApproveImageFiles(_ context.Context, files map[string]string) error {
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := f.o.Projects.ApproveFile(path, files[path]); err != nil {
			return f.did("approve "+path, err)
		}
	}
	return nil
}
