package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/spf13/cobra"
)

// Level is how bad a finding is.
type Level string

// The levels.
const (
	Good    Level = "ok"
	Notice  Level = "note"
	Problem Level = "problem"
)

// Finding is what one check of doctor found.
type Finding struct {
	Subject string `json:"subject"` // "tmux", "agent claude", …
	Level   Level  `json:"level"`
	Detail  string `json:"detail"`
	Next    string `json:"next,omitempty"` // what to do; required unless Level is Good
}

// checkPatience bounds each check.
const checkPatience = 10 * time.Second

// Check is one question of doctor. It obeys ctx, which has a deadline.
type Check func(ctx context.Context) []Finding

// doctor checks what cellmux needs and says what to do.
func (c *commands) doctor() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check tmux, the terminal, engines, agents and the database",
		Long: `Check tmux, the terminal, engines, agents, the database and disk space. Each
finding that is not ok has a next step. The exit code is 1 when there is a
problem; notes do not count.`,
		Example: `  cellmux doctor
  cellmux doctor --json | jq '.[] | select(.level=="problem")'`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := []Finding{}
			for _, check := range c.Checks() {
				ctx, cancel := context.WithTimeout(cmd.Context(), checkPatience)
				findings = append(findings, check(ctx)...)
				cancel()
			}
			problems := 0
			for _, f := range findings {
				if f.Level == Problem {
					problems++
				}
			}
			if asJSON {
				if err := c.printJSON(findings); err != nil {
					return err
				}
			} else {
				width := 0
				for _, f := range findings {
					width = max(width, ansi.StringWidth(f.Subject))
				}
				for _, f := range findings {
					fmt.Fprintf(c.Stdout, "%-7s  %s%s  %s\n", f.Level, f.Subject, strings.Repeat(" ", width-ansi.StringWidth(f.Subject)), oneLine(f.Detail))
					if f.Next != "" {
						fmt.Fprintf(c.Stdout, "         %s  -> %s\n", strings.Repeat(" ", width), oneLine(f.Next))
					}
				}
			}
			if problems > 0 {
				return exit{code: ExitFailed, err: fmt.Errorf("%d %s found", problems, plural(problems, "problem", "problems"))}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return cmd
}
