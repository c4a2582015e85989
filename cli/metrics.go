package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/dlwb/dlwb/cli/gputable"
	"github.com/dlwb/dlwb/cli/readback"
	"github.com/dlwb/dlwb/cli/reasons"
	"github.com/dlwb/dlwb/metrics"
	"github.com/dlwb/dlwb/metrics/folder"
	"github.com/dlwb/dlwb/metrics/mlflow"
	"github.com/dlwb/dlwb/metrics/recipe"
	"github.com/dlwb/dlwb/metrics/smi"
	"github.com/dlwb/dlwb/metrics/unpack"
	"github.com/dlwb/dlwb/sanitize"
	"github.com/dlwb/dlwb/settings"
	"github.com/dlwb/dlwb/workbench/history"
)

type (
	metricsAnswer struct {
		Format     metrics.Format     `json:"format"`
		Series     []seriesDoc        `json:"series"`
		Progress   metrics.Progress   `json:"progress"`
		GPUs       []metrics.GPU      `json:"gpus"`
		Apps       []smi.App          `json:"apps"`
		ErrorClass *smi.ErrorClass    `json:"error_class"`
		Faults     []faultDoc         `json:"faults"`
		Why        []whyDoc           `json:"why,omitempty"`
		Waiting    []metrics.Evidence `json:"waiting,omitempty"` // with --why: names with numbers that are in no series, and why
		Runs       []storedRunDoc     `json:"runs,omitempty"`    // of MLflow's database, with their parameters
		Unread     []folder.Unread    `json:"unread,omitempty"`  // of a folder: what was looked at and gave nothing

		why bool // it was asked for
	}
	seriesDoc struct {
		Name   string      `json:"name"`
		Split  string      `json:"split"`  // train, val, eval, test, or "" when it was not said
		Axis   string      `json:"axis"`   // what x is: step, epoch or ordinal
		Every  int         `json:"every"`  // of so many points one is kept; 1: all
		Points []plotPoint `json:"points"` // left empty: they are written one by one
		// Evidence is, with --why, how well a series of what was printed is known to be one.
		Evidence *metrics.Evidence `json:"evidence,omitempty"`
		// Sources are where a run told it, and which is shown.
		Sources []history.SeriesSource `json:"sources,omitempty"`

		from *metrics.Series
		axis metrics.Axis
	}
	storedRunDoc struct {
		mlflow.Run
		Source string `json:"source"` // as the series of the run have it
	}
	faultDoc struct {
		Offset int64  `json:"offset"`
		Class  string `json:"class"`
	}
	whyDoc struct {
		Rule   string          `json:"rule"`
		Points []metrics.Point `json:"points"`
		Line   string          `json:"line"`
	}
)

// plotPoint is x and y.
type plotPoint [2]float64

// MarshalJSON writes a y that JSON has no number for as "nan", "inf" or "-inf".
func (p plotPoint) MarshalJSON() ([]byte, error) {
	if math.IsNaN(p[1]) || math.IsInf(p[1], 0) {
		return fmt.Appendf(nil, "[%v,%q]", p[0], strings.ToLower(strings.TrimPrefix(fmt.Sprint(p[1]), "+"))), nil
	}
	return json.Marshal([2]float64(p))
}

func (s *seriesDoc) point(i int) plotPoint { return s.from.Point(i, s.axis) }

// mostReasons bounds the lines that --why explains with --json.
const mostReasons = 100_000

func (a *app) metricsCommand() *cobra.Command {
	var why bool
	var user []string
	c := &cobra.Command{
		Use: "metrics FILE|DIR|RUN [FILE...]", Short: "the series of a run, or in what a training printed or wrote",
		Long: `Tells the series of a RUN as they are on record: what it printed, and the files of
metrics that it wrote. Or reads FILE, or standard input when it is "-", and tells which series are in it:
the output of a training, an event file of TensorBoard, metrics.csv, trainer_state.json,
JSON lines, a metric or the database of MLflow (mlflow.db), a run-ID.wandb of W&B, or an answer of nvidia-smi. It finds out by itself what the file is.
Of a folder DIR, such as all that a run wrote or mlruns, each file is read by its kind, and what was looked
at and not read is told with the reason; each series then says which file it is from.`,
		Example: "  dlwb metrics train.log\n  dlwb metrics train.log --why\n  python train.py | tee train.log | dlwb metrics - --json\n  dlwb metrics train.log --metric 'val/acc: top-1 (\\d+\\.\\d+)'\n  dlwb metrics outputs/ mlruns/",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a.tellWrongRecipes()
			if len(args) > 1 || isFolder(args[0]) || folder.IsStore(args[0]) {
				expressions, err := userMetrics(user)
				if err != nil {
					return err
				}
				return a.metricsOfFiles(c.Context(), args, expressions, why)
			}
			if a.namesFile(args[0]) {
				return a.metrics(c.Context(), args[0], user, why)
			}
			return a.runMetrics(c, args[0], user, why)
		},
	}
	c.Flags().BoolVar(&why, "why", false, "for each line that gave something, say what and by which rule; then how well each series is known to be one, and which names are in none, and why")
	c.Flags().StringArrayVar(&user, "metric", nil, "an expression of your own, 'name: regex', that goes before what is found")
	return c
}

// userMetrics are the expressions of --metric.
func userMetrics(expressions []string) (user []metrics.UserMetric, err error) {
	for _, text := range expressions {
		u, err := metrics.ParseUserMetric(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("--metric: %w", err)}
		}
		user = append(user, u)
	}
	return user, nil
}

// document reads a file of any format.
func (a *app) document(ctx context.Context, path string, user []metrics.UserMetric, told func(metrics.Reading)) (*metrics.Document, error) {
	in, err := a.openInput(ctx, path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	plain, err := unpack.Open(in)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	doc, err := readback.Document(plain)
	if doc == nil && err == nil {
		doc, err = metrics.Read(plain, user, told)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	doc.NameBy(path)
	return doc, nil
}

// explained hears what each line gave, when it is asked for.
func (a *app) explained(answer *metricsAnswer, why bool) func(metrics.Reading) {
	if !why {
		return nil
	}
	return func(r metrics.Reading) { a.tellWhy(answer, r) }
}

func (a *app) metrics(ctx context.Context, path string, expressions []string, why bool) error {
	user, err := userMetrics(expressions)
	if err != nil {
		return err
	}
	answer := metricsAnswer{why: why}
	doc, err := a.document(ctx, path, user, a.explained(&answer, why))
	if err != nil {
		return err
	}
	answer.fill(doc)
	if a.json {
		return writeMetricsJSON(a.out, &answer)
	}
	return a.answer(answer, func(out io.Writer) { writeMetrics(out, answer) })
}

// writeMetricsJSON writes an answer without ever having the text of its points,
// which can be millions, as a whole.
func writeMetricsJSON(out io.Writer, answer *metricsAnswer) error {
	w := bufio.NewWriterSize(out, 64<<10)
	series := answer.Series
	answer.Series = []seriesDoc{}
	behind, err := openJSON(w, answer, "series")
	for i := range series {
		if i > 0 {
			w.WriteByte(',')
		}
		behindPoints, bad := openJSON(w, &series[i], "points")
		for p := range series[i].from.Len() {
			if p > 0 {
				w.WriteByte(',')
			}
			b, worse := series[i].point(p).MarshalJSON()
			w.Write(b)
			err = errors.Join(err, worse)
		}
		w.Write(behindPoints)
		err = errors.Join(err, bad)
	}
	w.Write(behind)
	w.WriteByte('\n')
	return errors.Join(err, w.Flush())
}

// openJSON writes a value until its list of a name, which is empty, begins, and
// returns what stands behind.
func openJSON(w *bufio.Writer, v any, list string) (behind []byte, err error) {
	text, err := sanitize.MarshalJSON(v)
	before, behind, _ := bytes.Cut(text, []byte(`"`+list+`":[]`))
	w.Write(before)
	w.WriteString(`"` + list + `":[`)
	return append([]byte{']'}, behind...), err
}

// tellWhy prints what a line gave at once; with --json it is part of the answer.
func (a *app) tellWhy(answer *metricsAnswer, r metrics.Reading) {
	if a.json {
		if len(answer.Why) < mostReasons {
			answer.Why = append(answer.Why, whyDoc{r.Rule, append([]metrics.Point{}, r.Points...), strings.Clone(r.Text)})
		}
		return
	}
	var b strings.Builder
	for _, p := range r.Points {
		fmt.Fprintf(&b, " %s=%v", p.Name, p.Value)
	}
	if b.Len() == 0 {
		b.WriteString(" says where the run is")
	}
	sanitize.Fprintf(a.out, "%s:%s\n    %s\n", r.Rule, b.String(), r.Text)
}

func (answer *metricsAnswer) fill(doc *metrics.Document) {
	answer.Format, answer.Progress = doc.Format, doc.Progress
	answer.Series, answer.GPUs, answer.Apps, answer.Faults = []seriesDoc{}, []metrics.GPU{}, []smi.App{}, []faultDoc{}
	for _, s := range doc.Set.Series {
		axis := s.Axis()
		answer.Series = append(answer.Series, seriesDoc{Name: s.Name, Split: metrics.Split(s.Name), Axis: axis.String(),
			Every: s.Every(), Points: []plotPoint{}, from: s, axis: axis})
	}
	answer.GPUs = append(answer.GPUs, doc.SMI.GPUs...)
	answer.Apps = append(answer.Apps, doc.SMI.Apps...)
	if e := doc.SMI.Error; e != smi.NoError {
		answer.ErrorClass = &e
	}
	answer.judge(doc.Evidence)
	for _, f := range doc.Faults {
		answer.Faults = append(answer.Faults, faultDoc{f.Offset, f.Class})
	}
}

// judge adds to each series how well it is known to be one, and what is in none,
// where that was asked for.
func (answer *metricsAnswer) judge(all []metrics.Evidence) {
	if !answer.why {
		return
	}
	var shown map[string]metrics.Evidence
	shown, answer.Waiting = reasons.Sort(all)
	for i := range answer.Series {
		if e, ok := shown[answer.Series[i].Name]; ok {
			answer.Series[i].Evidence = &e
		}
	}
}

// writeMetrics prints one line for each series or GPU.
func writeMetrics(out io.Writer, answer metricsAnswer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if answer.Format == metrics.NvidiaSMI {
		gputable.Write(w, answer.GPUs, answer.Apps, answer.ErrorClass)
		w.Flush()
		return
	}
	if len(answer.Series) == 0 {
		sanitize.Fprintf(out, "no series found (read as %s); --why shows what was understood, --metric 'name: regex' says what to look for\n", answer.Format)
	} else {
		sanitize.Fprintf(w, seriesHeader+"\n")
	}
	for i := range answer.Series {
		sanitize.Fprintf(w, seriesRow+"\n", answer.Series[i].cells()...)
	}
	w.Flush()
	writeEvidence(out, answer)
	for _, f := range answer.Faults {
		sanitize.Fprintf(out, "the file is damaged at byte %d: %s\n", f.Offset, f.Class)
	}
}

// seriesHeader names the cells of a series' row, and seriesRow sets them.
const (
	seriesHeader = "SERIES\tPOINTS\tX\tFIRST\tLAST\tMIN\tMAX"
	seriesRow    = "%s\t%d\t%s %v–%v\t%v\t%v\t%v\t%v"
)

// cells are a series in a table. They are set one by one: a tab within a word of
// others is none.
func (s *seriesDoc) cells() []any {
	n := s.from.Len()
	first, last := s.point(0), s.point(n-1)
	least, most := s.bounds()
	return []any{s.Name, n * s.Every, s.Axis, first[0], last[0], first[1], last[1], least, most}
}

func (s *seriesDoc) bounds() (least, most float64) {
	least, most = math.NaN(), math.NaN()
	for i := range s.from.Len() {
		if y := s.point(i)[1]; !math.IsNaN(y) && !math.IsInf(y, 0) { // as charts and records do
			if !(least <= y) {
				least = y
			}
			if !(most >= y) {
				most = y
			}
		}
	}
	return least, most
}

// ownRecipes are the user's recipes for formats of metrics: recipes/*.yaml beside
// the settings.
func ownRecipes() ([]recipe.Recipe, error) {
	path, err := settings.Path()
	if err != nil {
		return nil, nil // a user without a home has none
	}
	return recipe.Load(os.DirFS(filepath.Dir(path)), "recipes")
}

// learnRecipes has the readers of metrics know the user's recipes. One that is
// wrong is left out: it is no reason to lose a run.
func learnRecipes() {
	metrics.Learn(func() []recipe.Recipe {
		own, err := ownRecipes()
		if err != nil {
			slog.Warn("recipes of metrics", "error", err)
		}
		return own
	})
}

// tellWrongRecipes says what is wrong with the user's recipes, where they are used
// at once.
func (a *app) tellWrongRecipes() {
	if _, err := ownRecipes(); err != nil {
		sanitize.Fprintf(a.err, "%v\n", err)
	}
}
