package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completion writes a shell's completion script.
func (c *commands) completion() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Write the completion script of a shell",
		Example: `  source <(cellmux completion bash)
  cellmux completion fish > ~/.config/fish/completions/cellmux.fish`,
		Args:      args(cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs)),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, given []string) error {
			root := cmd.Root()
			switch given[0] {
			case "bash":
				return root.GenBashCompletionV2(c.Stdout, true)
			case "zsh":
				return root.GenZshCompletion(c.Stdout)
			case "fish":
				return root.GenFishCompletion(c.Stdout, true)
			default:
				return root.GenPowerShellCompletionWithDesc(c.Stdout)
			}
		},
	}
}

// man writes the manual page: one page for all commands, made from what --help
// says, so that the two never differ.
func (c *commands) man() *cobra.Command {
	return &cobra.Command{
		Use:   "man",
		Short: "Write the manual page (roff)",
		Example: `  cellmux man | man -l -
  cellmux man > ~/.local/share/man/man1/cellmux.1`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return manPage(c.Stdout, cmd.Root()) },
	}
}

func manPage(to io.Writer, root *cobra.Command) error {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH CELLMUX 1 \"\" \"cellmux %s\" \"User Commands\"\n", roff(root.Version))
	fmt.Fprintf(&b, ".SH NAME\ncellmux \\- %s\n", roff(root.Short))
	b.WriteString(".SH SYNOPSIS\n.B cellmux\n[\\fICOMMAND\\fR [\\fIARGUMENTS\\fR]]\n")
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s", paragraphs(root.Long))
	b.WriteString(".SH COMMANDS\n")
	for _, sub := range root.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		fmt.Fprintf(&b, ".SS %s\n%s", roff(sub.UseLine()), paragraphs(cmp.Or(sub.Long, sub.Short+".")))
		sub.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			name := "--" + f.Name
			if f.Shorthand != "" {
				name = "-" + f.Shorthand + ", " + name
			}
			fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", roff(name), roff(f.Usage))
		})
		if sub.Example != "" {
			fmt.Fprintf(&b, ".PP\n.nf\n%s\n.fi\n", roff(sub.Example))
		}
	}
	fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(root.Example))
	_, err := io.WriteString(to, b.String())
	return err
}

// paragraphs sets text whose indented lines are kept as they are.
func paragraphs(text string) string {
	var b strings.Builder
	b.WriteString(".PP\n")
	literal := false
	for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if indented := strings.HasPrefix(line, "  "); indented != literal {
			literal = indented
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[literal])
		}
		if line == "" {
			b.WriteString(".PP\n")
			continue
		}
		b.WriteString(roff(line) + "\n")
	}
	if literal {
		b.WriteString(".fi\n")
	}
	return b.String()
}

// roff escapes text: backslashes, dashes, and what would be a request at the
// start of a line.
func roff(text string) string {
	text = strings.ReplaceAll(text, `\`, `\e`)
	text = strings.ReplaceAll(text, "-", `\-`)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
