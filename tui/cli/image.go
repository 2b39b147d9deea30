package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"cellmux/engine"
	"cellmux/engine/fleet"
)

// Images makes and removes the images of cells.
type Images interface {
	BuildImage(ctx context.Context, cell string, progress func(engine.Progress)) (string, error)
	Images(ctx context.Context) ([]engine.Image, error)
	PruneImages(ctx context.Context) ([]engine.Image, error)
	ImageFiles(ctx context.Context, cell string) (map[string]string, error)
	ApproveImageFiles(ctx context.Context, files map[string]string) error
}

// image builds, lists and removes images.
func (c *commands) image() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Build, list and remove the images of docker cells",
		Long: `A docker cell is made from the image that [cell] image names, else from the
project's devcontainer.json once you have approved it, else from an image of
cellmux's own, which is built when a cell first needs it.`,
		Example: `  cellmux image build
  cellmux image ls
  cellmux image prune`,
		Args: unknownCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(c.imageBuild(), c.imageList(), c.imagePrune())
	return cmd
}

func (c *commands) imageBuild() *cobra.Command {
	var approve, quiet bool
	cmd := &cobra.Command{
		Use:   "build [CELL|DIR]",
		Short: "Build or fetch the image of a cell",
		Long: `Build the image of a docker cell, or fetch the one that it names, also when it is
there already. What the build says goes to standard error, the image's name to
standard output. Ctrl-C ends the build. A cell that runs keeps its image until it
is taken down.

A project's devcontainer.json has no effect until you approve it: its build runs
whatever its author wrote, with the network open. --devcontainer approves it, and
the Dockerfile beside it, as they are now.`,
		Example: `  cellmux image build
  cellmux image build api --devcontainer`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, given []string) error {
			ctx := cmd.Context()
			app, ref, err := c.namedCell(ctx, given)
			if err != nil {
				return err
			}
			if err := c.approveImageFiles(ctx, app, ref.Cell, approve); err != nil {
				return err
			}
			last := ""
			name, err := app.Images.BuildImage(ctx, ref.Cell, func(p engine.Progress) {
				line := oneLine(p.Step)
				if p.Total > 0 {
					line = fmt.Sprintf("[%d/%d] %s", p.Done, p.Total, line)
				}
				if !quiet && line != last {
					c.say("%s", line)
				}
				last = line
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.Stdout, name)
			return err
		},
	}
	cmd.Flags().BoolVar(&approve, "devcontainer", false, "approve the project's devcontainer.json as it is now, and use it")
	cmd.Flags().BoolVarP(&quiet, "quiet", "q", false, "say nothing while it builds")
	return cmd
}

// approveImageFiles approves a project's devcontainer when that was asked for.
func (c *commands) approveImageFiles(ctx context.Context, app *App, cell string, asked bool) error {
	if !asked {
		return nil
	}
	files, err := app.Images.ImageFiles(ctx, cell)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return errors.New("the project has no devcontainer.json that cellmux can use: it takes one with an image or with a Dockerfile beside it, and leaves features and compose aside")
	}
	if err := app.Images.ApproveImageFiles(ctx, files); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		c.say("Approved %s.", oneLine(path))
	}
	return nil
}

type imageJSON struct {
	Reference string    `json:"reference"`
	ID        string    `json:"id"`
	Stack     string    `json:"stack,omitempty"`
	Size      string    `json:"size"`
	Created   time.Time `json:"created"`
	InUse     bool      `json:"in_use"`
}

func (c *commands) imageList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "ls",
		Short:   "List the images that cellmux has made",
		Example: `  cellmux image ls --json`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			images, err := app.Images.Images(cmd.Context())
			if err != nil {
				return err
			}
			return c.printImages(images, asJSON, "cellmux has made no image.")
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

func (c *commands) imagePrune() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Remove the images that no cell needs",
		Long: `Remove the images that cellmux has made and that no container of a cell, running
or not, was made from. They are built again when a cell needs them. Images that
cellmux did not make are not touched.`,
		Example: `  cellmux image prune`,
		Args:    args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			app, err := c.app(cmd.Context())
			if err != nil {
				return err
			}
			removed, err := app.Images.PruneImages(cmd.Context())
			return errors.Join(c.printImages(removed, asJSON, "No image could be removed: each one is needed, or there is none."), err)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}

// printImages lists images; none says so in a sentence.
func (c *commands) printImages(images []engine.Image, asJSON bool, none string) error {
	if asJSON {
		out := []imageJSON{}
		for _, i := range images {
			out = append(out, imageJSON(i))
		}
		return c.printJSON(out)
	}
	if len(images) == 0 {
		c.say("%s", none)
		return nil
	}
	rows := [][]string{{"IMAGE", "SIZE", "AGE", "IN USE"}}
	for _, i := range images {
		used := "no"
		if i.InUse {
			used = "yes"
		}
		rows = append(rows, []string{i.Reference, i.Size, age(i.Created, time.Now()), used})
	}
	return c.table(rows)
}

var _ Images = (*fleet.Fleet)(nil)
