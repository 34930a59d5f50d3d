package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"
)

// The forms of output.
const (
	formatTable = "table"
	formatWide  = "wide"
	formatJSON  = "json"
	formatYAML  = "yaml"
	formatName  = "name"
)

var formats = []string{formatTable, formatWide, formatJSON, formatYAML, formatName}

// addOutputFlag gives cmd the flag -o.
func (a *app) addOutputFlag(cmd *cobra.Command) {
	cmd.Flags().StringVarP(&a.format, "output", "o", formatTable, "form of the output: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	inner := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if !contains(formats, a.format) {
			return usageError("the forms are "+quoteList(formats), "there is no output form %q", printable(a.format))
		}
		if inner != nil {
			return inner(cmd, args)
		}
		return nil
	}
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// machine tells that the output is for programs.
func (a *app) machine() bool {
	return a.format == formatJSON || a.format == formatYAML || a.format == formatName
}

// view is how values of one type are shown.
type view[T any] struct {
	columns []column[T]
	name    func(T) string // for -o name
}

type column[T any] struct {
	title string
	cell  func(T) string
	right bool // numbers
	wide  bool // with -o wide only
	style func(T) style
}

// show prints rows in the form asked for. one tells that a single thing was
// asked for, so that JSON and YAML have an object and not a list.
func show[T any](a *app, v view[T], rows []T, one bool) error {
	switch a.format {
	case formatJSON, formatYAML:
		var data any = rows
		if rows == nil {
			data = []T{}
		}
		if one && len(rows) == 1 {
			data = rows[0]
		}
		return a.encode(data)
	case formatName:
		for _, r := range rows {
			if _, err := fmt.Fprintln(a.IO.Out, printable(v.name(r))); err != nil {
				return err
			}
		}
		return nil
	}
	return writeTable(a.IO, v, rows, a.format == formatWide)
}

// encode prints data as JSON or, with -o yaml, as YAML.
func (a *app) encode(data any) error {
	b, err := json.MarshalIndent(data, "", "  ")
	if err != nil {
		return err
	}
	if a.format == formatYAML {
		if b, err = yaml.JSONToYAML(b); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(a.IO.Out, strings.TrimRight(string(b), "\n"))
	return err
}

// writeTable prints padded columns with a title line on a terminal, and
// tab-separated lines without titles elsewhere: what cut and awk want.
func writeTable[T any](s *IOStreams, v view[T], rows []T, wide bool) error {
	var cols []column[T]
	for _, c := range v.columns {
		if !c.wide || wide {
			cols = append(cols, c)
		}
	}
	cells := make([][]string, len(rows))
	widths := make([]int, len(cols))
	for i, c := range cols {
		widths[i] = utf8.RuneCountInString(c.title)
	}
	for i, r := range rows {
		cells[i] = make([]string, len(cols))
		for j, c := range cols {
			cells[i][j] = printable(c.cell(r))
			widths[j] = max(widths[j], utf8.RuneCountInString(cells[i][j]))
		}
	}
	if !s.OutTTY {
		return writeTabbed(s.Out, cells)
	}
	if len(rows) == 0 {
		return nil
	}
	var b strings.Builder
	for j, c := range cols {
		pad(&b, paint(s.OutColor, styleFaint, c.title), c.title, widths[j], c.right, j == len(cols)-1)
	}
	for i, r := range rows {
		for j, c := range cols {
			text := cells[i][j]
			if c.style != nil {
				text = paint(s.OutColor, c.style(r), text)
			}
			pad(&b, text, cells[i][j], widths[j], c.right, j == len(cols)-1)
		}
	}
	_, err := io.WriteString(s.Out, b.String())
	return err
}

func writeTabbed(w io.Writer, cells [][]string) error {
	for _, row := range cells {
		if _, err := fmt.Fprintln(w, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return nil
}

// pad writes text, which shows as plain, in width columns.
func pad(b *strings.Builder, text, plain string, width int, right, last bool) {
	space := strings.Repeat(" ", width-utf8.RuneCountInString(plain))
	switch {
	case right:
		b.WriteString(space + text)
	case last:
		b.WriteString(text)
	default:
		b.WriteString(text + space)
	}
	if last {
		b.WriteByte('\n')
	} else {
		b.WriteString("  ")
	}
}

// pair is one line of a description.
type pair struct{ key, value string }

// describe prints pairs, leaving out those without a value.
func (a *app) describe(pairs []pair) {
	width := 0
	for _, p := range pairs {
		if p.value != "" {
			width = max(width, len(p.key))
		}
	}
	for _, p := range pairs {
		if p.value == "" {
			continue
		}
		if !a.IO.OutTTY {
			fmt.Fprintf(a.IO.Out, "%s\t%s\n", p.key, printable(p.value))
			continue
		}
		fmt.Fprintf(a.IO.Out, "%s%s  %s\n", paint(a.IO.OutColor, styleFaint, p.key), strings.Repeat(" ", width-len(p.key)), printable(p.value))
	}
}

// say writes a line for people to standard error.
func (a *app) say(format string, args ...any) {
	fmt.Fprintln(a.IO.Err, printable(fmt.Sprintf(format, args...)))
}
