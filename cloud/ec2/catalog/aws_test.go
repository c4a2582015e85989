package catalog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dlwb/dlwb/cloud"
	"github.com/dlwb/dlwb/cloud/ec2/awsapi"
)

// script is an AWS that says what a test wants it to: the body for each call,
// or a status and an error code.
type script struct {
	mu    sync.Mutex
	say   map[string]func(q url.Values) (int, string)
	calls []string
}

func (s *script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, action, isJSON := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	q := url.Values{}
	if isJSON {
		q.Set("body", string(body))
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	} else {
		q, _ = url.ParseQuery(string(body))
		action = q.Get("Action")
	}
	s.mu.Lock()
	s.calls = append(s.calls, action)
	say := s.say[action]
	s.mu.Unlock()
	status, text := 400, "UnexpectedCall"
	if say != nil {
		status, text = say(q)
	}
	if status != 200 && isJSON {
		text = fmt.Sprintf(`{"__type":%q,"message":"no"}`, text)
	} else if status != 200 {
		text = fmt.Sprintf("<Response><Errors><Error><Code>%s</Code><Message>no</Message></Error></Errors></Response>", text)
	} else if !isJSON {
		text = fmt.Sprintf("<%sResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\">%s</%sResponse>", action, text, action)
	}
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// seen counts the calls of an action and forgets them.
func (s *script) seen(action string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.calls)
	s.calls = slices.DeleteFunc(s.calls, func(c string) bool { return c == action })
	return n - len(s.calls)
}

func (s *script) on(action string, say func(q url.Values) (int, string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.say[action] = say
}

func always(text string) func(url.Values) (int, string) {
	return func(url.Values) (int, string) { return 200, text }
}

func refuse(code string) func(url.Values) (int, string) {
	return func(url.Values) (int, string) { return 400, code }
}

func typeXML(name, gpus string, vcpus int) string {
	return fmt.Sprintf(`<item><instanceType>%s</instanceType>
	<supportedUsageClasses><item>on-demand</item><item>spot</item></supportedUsageClasses>
	<processorInfo><supportedArchitectures><item>x86_64</item></supportedArchitectures></processorInfo>
	<vCpuInfo><defaultVCpus>%d</defaultVCpus></vCpuInfo><memoryInfo><sizeInMiB>16384</sizeInMiB></memoryInfo>
	<networkInfo><networkPerformance>Up to 10 Gigabit</networkPerformance></networkInfo>
	<placementGroupInfo><supportedStrategies><item>cluster</item></supportedStrategies></placementGroupInfo>%s</item>`, name, vcpus, gpus)
}

func gpuXML(model string, count int, more string, mib int) string {
	return fmt.Sprintf(`<gpuInfo><gpus><item><name>%s</name><manufacturer>NVIDIA</manufacturer><count>%d</count>%s
	<memoryInfo><sizeInMiB>%d</sizeInMiB></memoryInfo></item></gpus></gpuInfo>`, model, count, more, mib)
}

func spotXML(name, zone, price string, at time.Time) string {
	return fmt.Sprintf(`<item><instanceType>%s</instanceType><availabilityZone>%s</availabilityZone><productDescription>Linux/UNIX</productDescription><spotPrice>%s</spotPrice><timestamp>%s</timestamp></item>`,
		name, zone, price, at.UTC().Format(time.RFC3339))
}

// productJSON is an entry of the price list: a string of JSON within JSON.
func productJSON(name, market, unit, usd string) string {
	entry := fmt.Sprintf(`{"product":{"attributes":{"instanceType":%q,"marketoption":%q}},"terms":{"OnDemand":{"A.B":{"priceDimensions":{"A.B.C":{"unit":%q,"pricePerUnit":{"USD":%q}}}}}}}`, name, market, unit, usd)
	b, _ := json.Marshal(entry)
	return string(b)
}

// smallRegion is a script of a small region: g5.xlarge in two zones, an eighth of an
// L4 in one, and g4dn.xlarge in none.
func smallRegion(t *testing.T) (*script, *Market) {
	t.Helper()
	s := &script{say: map[string]func(url.Values) (int, string){}}
	now := time.Now()
	s.on("DescribeInstanceTypes", func(q url.Values) (int, string) {
		if q.Get("Filter.1.Value.1") == "t3.micro" {
			return 200, "<instanceTypeSet>" + typeXML("t3.micro", "", 2) + "</instanceTypeSet>"
		}
		if slices.Contains([]string{"p5.48xlarge", "g5.xlrage"}, q.Get("Filter.1.Value.1")) {
			return 200, "<instanceTypeSet/>"
		}
		if q.Get("NextToken") == "" {
			return 200, "<instanceTypeSet>" + typeXML("g5.xlarge", gpuXML("A10G", 1, "", 22888), 4) + "</instanceTypeSet><nextToken>2</nextToken>"
		}
		return 200, "<instanceTypeSet>" +
			typeXML("g6f.large", gpuXML("L4", 0, "<logicalGpuCount>1</logicalGpuCount><gpuPartitionSize>0.125</gpuPartitionSize>", 2861), 2) +
			typeXML("g4dn.xlarge", gpuXML("T4", 1, "", 16384), 4) + "</instanceTypeSet>"
	})
	offering := func(name, zone string) string {
		return "<item><instanceType>" + name + "</instanceType><location>" + zone + "</location></item>"
	}
	s.on("DescribeInstanceTypeOfferings", func(q url.Values) (int, string) {
		if q.Get("LocationType") == "region" {
			return 200, "<instanceTypeOfferingSet>" + offering("g5.xlarge", "us-east-1") + offering("t3.micro", "us-east-1") + "</instanceTypeOfferingSet>"
		}
		return 200, "<instanceTypeOfferingSet>" + offering("g5.xlarge", "us-east-1b") + offering("g5.xlarge", "us-east-1a") + offering("g6f.large", "us-east-1a") + "</instanceTypeOfferingSet>"
	})
	s.on("DescribeAvailabilityZones", always(`<availabilityZoneInfo><item><zoneName>us-east-1a</zoneName><zoneId>use1-az6</zoneId></item></availabilityZoneInfo>`))
	s.on("DescribeSpotPriceHistory", always("<spotPriceHistorySet>"+
		spotXML("g5.xlarge", "us-east-1a", "0.9", now.Add(-2*time.Hour))+
		spotXML("g5.xlarge", "us-east-1a", "0.5", now.Add(-time.Hour))+
		spotXML("g5.xlarge", "us-east-1b", "0.4", now.Add(-time.Hour))+
		spotXML("g5.xlarge", "us-east-1b", "0.3", now.Add(-3*time.Hour))+
		spotXML("g6f.large", "us-east-1a", "junk", now)+"</spotPriceHistorySet>"))
	s.on("DescribeInstances", always(`<reservationSet><item><instancesSet>
		<item><instanceType>g5.xlarge</instanceType></item>
		<item><instanceType>g6.xlarge</instanceType><instanceLifecycle>spot</instanceLifecycle></item>
		<item><instanceType>p5.48xlarge</instanceType><instanceLifecycle>capacity-block</instanceLifecycle></item>
		<item><instanceType>t3.micro</instanceType><cpuOptions><coreCount>1</coreCount><threadsPerCore>1</threadsPerCore></cpuOptions></item>
		</instancesSet></item></reservationSet>`))
	s.on("GetServiceQuota", func(q url.Values) (int, string) {
		switch {
		case strings.Contains(q.Get("body"), onDemandG.code):
			return 200, `{"Quota":{"Value":24}}`
		case strings.Contains(q.Get("body"), spotG.code):
			return 400, "NoSuchResourceException"
		}
		return 400, "AccessDeniedException"
	})
	s.on("GetAWSDefaultServiceQuota", always(`{"Quota":{"Value":8}}`))
	s.on("GetProducts", func(q url.Values) (int, string) {
		if !strings.Contains(q.Get("body"), `"us-east-1"`) {
			return 400, "WrongRegion"
		}
		list := productJSON("g5.xlarge", "OnDemand", "Hrs", "1.0100000000") + "," +
			productJSON("g5.xlarge", "CapacityBlock", "Hrs", "9") + "," + `"junk"`
		return 200, `{"FormatVersion":"aws_v1","PriceList":[` + list + `]}`
	})
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, NewMarket(client(t, server.URL), t.TempDir())
}

// client is an AWS client of an endpoint.
func client(t testing.TB, endpoint string, env ...string) *awsapi.API {
	t.Helper()
	for _, kv := range append([]string{"AWS_ENDPOINT_URL=" + endpoint, "AWS_ACCESS_KEY_ID=AKIAEXAMPLE", "AWS_SECRET_ACCESS_KEY=s",
		"AWS_SESSION_TOKEN=", "AWS_PROFILE=", "AWS_CA_BUNDLE=", "AWS_REGION=us-east-1", "AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null"}, env...) {
		name, value, _ := strings.Cut(kv, "=")
		t.Setenv(name, value)
	}
	api, err := awsapi.Load(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return api
}

func ask1(t *testing.T, m *Market, q cloud.Query) cloud.Offers {
	t.Helper()
	o, err := m.Offers(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestTheMarketIsWhatAWSSays(t *testing.T) {
	_, m := smallRegion(t)
	o := ask1(t, m, cloud.Query{Spot: true})
	if !o.Live || len(o.Offers) != 3 || len(o.Notes) != 0 {
		t.Fatalf("%+v", o)
	}
	g5 := find(t, o.Offers, "g5.xlarge")
	if g5.OnDemand.PerHour != 1.01 || g5.OnDemand.Source != listSource {
		t.Errorf("on demand: %+v", g5.OnDemand)
	}
	if g5.Spot.PerHour != 0.4 || g5.Spot.Source != "spot price history" {
		t.Errorf("spot is the cheapest zone's newest price: %+v", g5.Spot)
	}
	want := []cloud.Zone{{Name: "us-east-1b", Spot: 0.4}, {Name: "us-east-1a", ID: "use1-az6", Spot: 0.5}}
	if !slices.Equal(g5.Zones, want) {
		t.Errorf("zones %+v", g5.Zones)
	}
	if q := g5.Quota; !q.Known || q.Limit != 24 || q.Used != 4 || q.Left != 5 || q.Code != "L-DB2E81BA" {
		t.Errorf("quota %+v", q)
	}
	if q := g5.SpotQuota; !q.Known || q.Limit != 8 || q.Used != 4 || q.Left != 1 {
		t.Errorf("spot quota, known by its default only: %+v", q)
	}
	if f := find(t, o.Offers, "g6f.large"); f.GPUs != 1 || f.GPUShare != 0.125 || f.OnDemand.Source != tableSource || f.Spot.Known() {
		t.Errorf("g6f.large: %+v", f)
	}
	if last := o.Offers[2]; last.Instance != "g4dn.xlarge" && last.Instance != "g6f.large" {
		t.Errorf("what has no spot market comes last: %v", names(o.Offers))
	}
	if n := find(t, o.Offers, "g4dn.xlarge").Notes[0]; n != "no zone of us-east-1 offers it" {
		t.Errorf("g4dn.xlarge: %q", n)
	}
}

func TestAYoungAnswerIsNotAskedForAgainAndAnOldOneIs(t *testing.T) {
	s, m := smallRegion(t)
	ask1(t, m, cloud.Query{})
	if n := s.seen("DescribeInstanceTypes"); n != 3 {
		t.Fatalf("%d calls, want two pages of types and one type that runs", n)
	}
	s.seen("DescribeSpotPriceHistory")
	s.seen("GetProducts")
	ask1(t, m, cloud.Query{Spot: true})
	if n := s.seen("DescribeInstanceTypes") + s.seen("DescribeSpotPriceHistory") + s.seen("GetProducts"); n != 0 {
		t.Errorf("%d calls although everything was young", n)
	}
	m.now = func() time.Time { return time.Now().Add(11 * time.Minute) }
	ask1(t, m, cloud.Query{})
	if s.seen("DescribeSpotPriceHistory") != 1 || s.seen("DescribeInstanceTypes") != 1 {
		t.Error("after 11 minutes spot prices are old and types are not")
	}
	ask1(t, m, cloud.Query{Fresh: true})
	if s.seen("DescribeInstanceTypes") != 3 || s.seen("DescribeSpotPriceHistory") != 1 || s.seen("GetProducts") == 0 {
		t.Error("a fresh answer was asked for and an old one given")
	}
}

// Of a type that is named AWS is asked alone, and not at all where it has told of
// all GPU types a while ago.
func TestANamedTypeIsAskedForAlone(t *testing.T) {
	s, m := smallRegion(t)
	var mu sync.Mutex
	asked := map[string]bool{}
	all := s.say["DescribeInstanceTypes"]
	s.on("DescribeInstanceTypes", func(q url.Values) (int, string) {
		mu.Lock()
		defer mu.Unlock()
		asked[q.Get("Filter.1.Value.1")] = true
		return all(q)
	})
	named := cloud.Query{Instance: "g5.xlarge"}
	o := ask1(t, m, named)
	if len(o.Offers) != 1 || !o.Live || len(o.Notes) != 0 || o.Offers[0].OnDemand.PerHour != 1.01 || o.Offers[0].Spot.PerHour != 0.4 {
		t.Errorf("%+v", o)
	}
	if want := map[string]bool{"g5.xlarge": true, "t3.micro": true}; !maps.Equal(asked, want) { // t3.micro runs: its vCPUs count
		t.Errorf("asked for %v, want %v", asked, want)
	}
	s.seen("DescribeInstanceTypes")
	s.seen("GetProducts")
	ask1(t, m, named)
	if n := s.seen("DescribeInstanceTypes") + s.seen("GetProducts"); n != 0 {
		t.Errorf("%d calls for the same type again", n)
	}

	ask1(t, m, cloud.Query{}) // all of them
	s.seen("DescribeInstanceTypes")
	s.seen("GetProducts")
	other := ask1(t, m, cloud.Query{Instance: "g6f.large"})
	if n := s.seen("DescribeInstanceTypes") + s.seen("GetProducts"); n != 0 || other.Offers[0].GPUShare != 0.125 {
		t.Errorf("%d calls for a type of which all is known: %+v", n, other)
	}

	began := time.Now()
	m.now = func() time.Time { return began.Add(30 * time.Hour) }
	for action := range s.say {
		s.on(action, refuse("UnauthorizedOperation"))
	}
	if old := ask1(t, m, cloud.Query{Instance: "g6f.large"}); !old.Live || len(old.Notes) != 6 || old.Offers[0].GPUShare != 0.125 {
		t.Errorf("what was told of all is better than nothing: %+v", old)
	}
}

func TestAPartThatFailsFailsAlone(t *testing.T) {
	all := []string{"DescribeInstanceTypes", "DescribeInstanceTypeOfferings", "DescribeAvailabilityZones", "DescribeSpotPriceHistory", "DescribeInstances", "GetServiceQuota", "GetProducts"}
	for _, action := range all {
		t.Run(action, func(t *testing.T) {
			s, m := smallRegion(t)
			code := "UnauthorizedOperation"
			if strings.HasPrefix(action, "Get") {
				code = "AccessDeniedException"
			}
			s.on(action, refuse(code))
			o := ask1(t, m, cloud.Query{})
			g5 := find(t, o.Offers, "g5.xlarge")
			if o.Live != (action != "DescribeInstanceTypes") {
				t.Errorf("live: %v", o.Live)
			}
			if g5.Quota.Known != (action != "DescribeInstances" && action != "GetServiceQuota") {
				t.Errorf("a refusal is no quota: %+v", g5.Quota)
			}
			if !g5.Quota.Known && !strings.Contains(g5.Quota.Why, "permission") {
				t.Errorf("why is the quota not known? %q", g5.Quota.Why)
			}
			if wantList := action != "GetProducts"; (g5.OnDemand.Source == listSource) != wantList || !g5.OnDemand.Known() {
				t.Errorf("price %+v", g5.OnDemand)
			}
			if g5.Spot.Known() != (action != "DescribeSpotPriceHistory") {
				t.Errorf("spot %+v", g5.Spot)
			}
			if len(g5.Zones) != 2 {
				t.Errorf("zones %+v", g5.Zones)
			}
			if action != "DescribeInstances" && (len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "permission")) {
				t.Errorf("notes %q", o.Notes)
			}
		})
	}
}

func TestOneTypeThatNobodyKnowsLeavesOneQuotaInDoubt(t *testing.T) {
	s, m := smallRegion(t)
	s.on("DescribeInstanceTypes", refuse("UnauthorizedOperation"))
	got, err := live{api: m.api, region: "us-east-1"}.quotas(context.Background())
	if err != nil || len(got.UsedWhy) != 1 || !strings.Contains(got.UsedWhy[onDemandStandard.code], "permission") || got.Used[onDemandG.code] != 4 {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestAnOldAnswerIsBetterThanNoneAndSaysHowOldItIs(t *testing.T) {
	s, m := smallRegion(t)
	ask1(t, m, cloud.Query{})
	began := time.Now()
	m.now = func() time.Time { return began.Add(30 * time.Hour) }
	for action := range s.say {
		s.on(action, refuse("UnauthorizedOperation"))
	}
	o := ask1(t, m, cloud.Query{})
	g5 := find(t, o.Offers, "g5.xlarge")
	if !o.Live || len(o.Offers) != 3 || g5.OnDemand.PerHour != 1.01 || g5.Spot.PerHour != 0.4 || o.At.After(began.Add(time.Minute)) {
		t.Fatalf("%+v", o)
	}
	if len(o.Notes) != 6 || !strings.Contains(strings.Join(o.Notes, "\n"), "spot prices are 30h old: ") {
		t.Errorf("notes %q", o.Notes)
	}
}

func TestARegionWithoutAPriceDoesNotTakeAnothers(t *testing.T) {
	_, m := smallRegion(t)
	o := ask1(t, m, cloud.Query{Regions: []string{"eu-west-1"}})
	if g5 := find(t, o.Offers, "g5.xlarge"); g5.OnDemand.Known() || len(o.Notes) != 1 {
		t.Errorf("%+v, notes %q", g5.OnDemand, o.Notes)
	}
}

func TestWithoutCredentialsTheTableAnswersAtOnce(t *testing.T) {
	s, _ := smallRegion(t)
	server := httptest.NewServer(s)
	defer server.Close()
	m := NewMarket(client(t, server.URL, "AWS_ACCESS_KEY_ID=", "AWS_SECRET_ACCESS_KEY="), t.TempDir())
	began := time.Now()
	o := ask1(t, m, cloud.Query{})
	if o.Live || len(o.Offers) != 74 || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "no AWS credentials were found") {
		t.Errorf("live %v, %d offers, notes %q", o.Live, len(o.Offers), o.Notes)
	}
	if took := time.Since(began); took > m.wait.first/2 {
		t.Errorf("it took %v to find that there are no credentials", took)
	}
}

func TestAnAccountSeesNothingOfAnothersShelf(t *testing.T) {
	s, m := smallRegion(t)
	ask1(t, m, cloud.Query{})
	s.seen("DescribeInstanceTypes")
	other := NewMarket(client(t, m.api.Endpoint(), "AWS_ACCESS_KEY_ID=AKIAOTHER"), m.dir)
	ask1(t, other, cloud.Query{})
	if s.seen("DescribeInstanceTypes") == 0 {
		t.Error("the zones and quotas of another account were taken for its own")
	}
}

// Some that stand in for AWS know no filter of DescribeInstanceTypes, and no
// DescribeInstanceTypeOfferings: what they leave out is not known to be missing.
func TestWhereTheFilterIsIgnoredATypeIsAskedForByName(t *testing.T) {
	s, m := smallRegion(t)
	s.on("DescribeInstanceTypeOfferings", func(url.Values) (int, string) {
		return 400, "<Response><Errors><Error><Code>InvalidAction</Code><Message>Unknown EC2 action</Message></Error></Errors></Response>"
	})
	s.on("DescribeInstanceTypes", func(q url.Values) (int, string) {
		if name := q.Get("InstanceType.1"); name == "g5.xlarge" {
			return 200, "<instanceTypeSet>" + typeXML(name, gpuXML("A10G", 1, "", 22888), 4) + "</instanceTypeSet>"
		}
		return 200, "<instanceTypeSet>" + typeXML("t2.micro", "", 1) + "</instanceTypeSet>"
	})
	for _, name := range []string{"g5.xlarge", "p5.48xlarge"} {
		if o, err := m.Lookup(t.Context(), "us-east-1", name); err != nil || o.Instance != name {
			t.Errorf("%s: %+v, %v", name, o, err)
		}
	}
}

func TestLookupOfATypeThatTheRegionHasNot(t *testing.T) {
	s, m := smallRegion(t)
	_, err := m.Lookup(context.Background(), "us-east-1", "p5.48xlarge")
	if err == nil || !strings.HasPrefix(err.Error(), "p5.48xlarge is not offered in us-east-1") {
		t.Errorf("%v", err)
	}
	_, err = m.Lookup(context.Background(), "us-east-1", "g5.xlrage")
	if err == nil || err.Error() != `there is no instance type "g5.xlrage" in us-east-1; near it: g5.xlarge` {
		t.Errorf("%v", err)
	}
	s.on("DescribeInstanceTypes", always("<instanceTypeSet/>"))
	_, err = m.Lookup(context.Background(), "us-east-1", "t3.mikro")
	if err == nil || !strings.Contains(err.Error(), "near it: t3.micro") {
		t.Errorf("%v", err)
	}
}

func TestThePriceOfADisk(t *testing.T) {
	s, m := smallRegion(t)
	s.on("GetProducts", always(`{"PriceList":[`+productJSON("", "", "GB-Mo", "0.0952")+`]}`))
	p := m.DiskPrice(context.Background(), "eu-central-1")
	if got := p.PerHour * hoursPerMonth; got < 0.0951 || got > 0.0953 || p.Source != listSource || p.At.IsZero() {
		t.Errorf("%+v", p)
	}
	if p := builtin().DiskPrice(context.Background(), "us-east-1"); p != DiskPrice("us-east-1") {
		t.Errorf("%+v", p)
	}
}

func TestWithoutANetworkTheTableAnswersAtOnce(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	m := NewMarket(client(t, closed.URL), t.TempDir())
	began := time.Now()
	o := ask1(t, m, cloud.Query{})
	if o.Live || len(o.Offers) != 74 || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "nothing listens where AWS is expected") {
		t.Errorf("live %v, %d offers, notes %q", o.Live, len(o.Offers), o.Notes)
	}
	if took := time.Since(began); took > m.wait.first/2 {
		t.Errorf("it took %v to find that nobody is there", took)
	}
}

func TestAnAnswerThatNeverComesIsNotWaitedForForever(t *testing.T) {
	s, m := smallRegion(t)
	ask1(t, m, cloud.Query{})
	m.wait.fresher = 6 * time.Second
	hang := make(chan struct{})
	t.Cleanup(func() { close(hang) })
	s.on("DescribeSpotPriceHistory", func(url.Values) (int, string) { <-hang; return 200, "" })
	m.now = func() time.Time { return time.Now().Add(time.Hour) }
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if _, err := m.Offers(ctx, cloud.Query{}); err == nil {
		t.Error("whoever gave up gets no answer")
	}
	o := ask1(t, m, cloud.Query{})
	if find(t, o.Offers, "g5.xlarge").Spot.PerHour != 0.4 || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "AWS did not answer within 6s") {
		t.Errorf("notes %q", o.Notes)
	}
	began := time.Now()
	again := ask1(t, m, cloud.Query{})
	if took := time.Since(began); took > m.wait.fresher/2 || !slices.Equal(again.Notes, o.Notes) {
		t.Errorf("a silence is remembered: the second question took %v, notes %q", took, again.Notes)
	}
}

func TestEachQuotaIsKnownByItself(t *testing.T) {
	_, m := smallRegion(t)
	got, err := live{api: m.api, region: "us-east-1"}.quotas(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if used := got.Used; used[onDemandG.code] != 4 || used[spotG.code] != 4 || used[onDemandStandard.code] != 2 || used[onDemandP.code] != 0 {
		t.Errorf("a capacity block counts against no quota of these: %v", used)
	}
	v := view{quotas: answer[quotas]{value: got, ok: true}}
	if len(got.UsedWhy) != 0 {
		t.Errorf("%v", got.UsedWhy)
	}
	if q := v.quota("p5.48xlarge", 192, false); q.Known || q.Limit != 0 || !strings.Contains(q.Why, "permission") {
		t.Errorf("a quota that was refused is not known, which is not 0: %+v", q)
	}
	v.quotas.value.UsedWhy = map[string]string{onDemandG.code: "it was dark"}
	if q := v.quota("g5.xlarge", 4, false); q.Known || q.Limit != 24 || !strings.HasSuffix(q.Why, "not known: it was dark") {
		t.Errorf("%+v", q)
	}
	v.quotas.value.UsedWhy = nil
	if q := v.quota("trn1.2xlarge", 8, false); q.Known || q.Why == "" {
		t.Errorf("%+v", q)
	}
	if q := v.quota("g5.48xlarge", 192, false); !q.Known || q.Left != 0 {
		t.Errorf("%+v", q)
	}
}

// Empty answers are no facts about a region: they would count for a day.
func TestARegionThatListsNoTypesIsNotKnownToHaveNone(t *testing.T) {
	s, m := smallRegion(t)
	s.on("DescribeInstanceTypes", always(""))
	o := ask1(t, m, cloud.Query{})
	if len(o.Offers) == 0 || len(o.Notes) == 0 || !strings.Contains(o.Notes[0], "lists no type at all") {
		t.Errorf("%d offers, notes %q", len(o.Offers), o.Notes)
	}
}

// What AWS's silence was made of is told: a page of errors is no silence.
func TestAnAnswerThatComesTooLateSaysWhatCameInstead(t *testing.T) {
	s, m := smallRegion(t)
	m.wait.first = 2 * time.Second
	s.on("DescribeInstanceTypes", func(url.Values) (int, string) { return 503, "" })
	o := ask1(t, m, cloud.Query{})
	if len(o.Notes) == 0 || !strings.Contains(o.Notes[0], "HTTP 503") {
		t.Errorf("notes %q", o.Notes)
	}
}
