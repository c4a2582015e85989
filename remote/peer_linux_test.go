package remote

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
)

const tableHead = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"

func TestOwnerOfTheOtherEndIsReadFromTheTables(t *testing.T) {
	here, there := netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.1:50000")
	if end := hexWords([]byte{127, 0, 0, 1}); end != "0100007F" && end != "7F000001" {
		t.Fatalf("127.0.0.1 is %s", end)
	}
	mine := func(text string) string { return strings.ReplaceAll(text, "HERE", hexWords([]byte{127, 0, 0, 1})) }
	listener := mine("   0: HERE:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0\n")
	ours := mine("   1: HERE:1F90 HERE:C350 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0 100 0 0 10 0\n")
	row := func(rest string) string {
		return mine("   2: HERE:C350 HERE:1F90 01 00000000:00000000 00:00000000 00000000  " + rest + " 1 0 20 0 0 10 -1\n")
	}
	mapped := "   3: " + hexWords(as16(there)) + ":C350 " + hexWords(as16(here)) + ":1F90 01 0:0 00:0 0  1001        0 99 1 0\n"
	for name, c := range map[string]struct {
		tables socketTable
		found  bool
		own    bool
	}{
		"ours":                      {socketTable{tableHead + listener + ours + row("1000        0 77")}, true, true},
		"another user's":            {socketTable{tableHead + listener + ours + row("1001        0 77")}, true, false},
		"root's":                    {socketTable{tableHead + listener + ours + row("   0        0 77")}, true, true},
		"closed already":            {socketTable{tableHead + listener + ours + row("   0        0 0")}, true, false},
		"an IPv6 socket's":          {socketTable{tableHead + listener + ours, tableHead + mapped}, true, false},
		"none":                      {socketTable{tableHead + listener + ours}, false, false},
		"a row that is cut":         {socketTable{tableHead + listener + "   2: 0100007F:C350 0100007F:1F90 01"}, false, false},
		"a number that is too long": {socketTable{row("99999999999999999999        0 77")}, false, false},
	} {
		got, found := c.tables.find(there, here)
		if found != c.found || found && got.isOf(1000) != c.own {
			t.Errorf("%s: found %v, %+v", name, found, got)
		}
	}
	if !(socketTable{listener}).has(here, netip.AddrPort{}, stateListen) || (socketTable{ours}).has(here, netip.AddrPort{}, stateListen) {
		t.Error("the listener is not told from a connection")
	}
	if (socketRow{0, "0"}).isOf(0) || !(socketRow{0, "5"}).isOf(0) || (socketRow{1000, "5"}).isOf(0) {
		t.Error("root takes a socket that was closed for its own, or another's")
	}
}

// To read a table takes milliseconds, for each connection: the second one is read for
// what the first does not have.
func TestTheSecondTableOfSocketsIsReadForWhatTheFirstHasNot(t *testing.T) {
	here, there := netip.MustParseAddrPort("127.0.0.1:8080"), netip.MustParseAddrPort("127.0.0.1:50000")
	end := func(a netip.AddrPort) string { return fmt.Sprintf("%s:%04X", hexWords(a.Addr().AsSlice()), a.Port()) }
	listener := "   0: " + end(here) + " 00000000:0000 0A 0:0 00:0 0  1000        0 11 1 0\n"
	other := "   1: " + end(there) + " " + end(here) + " 01 0:0 00:0 0  1001        0 77 1 0\n"
	const first, second = "/proc/net/tcp", "/proc/net/tcp6"
	for name, c := range map[string]struct {
		tables       map[string]string
		found, known bool
		reads        []string
	}{
		"both in the first":           {map[string]string{first: listener + other}, true, true, []string{first}},
		"the other end in the second": {map[string]string{first: listener, second: other}, true, true, []string{first, second}},
		"the listener in the second":  {map[string]string{first: other, second: listener}, true, true, []string{first, second}},
		"no other end":                {map[string]string{first: listener, second: ""}, false, true, []string{first, second}},
		"no listener":                 {map[string]string{first: other, second: ""}, true, false, []string{first, second}},
		"no second table":             {map[string]string{first: listener}, false, true, []string{first, second}},
		"no first table":              {map[string]string{second: listener + other}, false, false, []string{first}},
		"both in the second":          {map[string]string{first: "", second: listener + other}, true, true, []string{first, second}},
	} {
		var reads []string
		row, found, known := findPeer(here, there, func(name string) ([]byte, error) {
			reads = append(reads, name)
			if text, is := c.tables[name]; is {
				return []byte(tableHead + text), nil
			}
			return nil, os.ErrNotExist
		})
		if found != c.found || known != c.known || !slices.Equal(reads, c.reads) || found && row.uid != 1001 {
			t.Errorf("%s: found %v, known %v, %+v, read %v", name, found, known, row, reads)
		}
	}
}

func TestConnectionOfThisUserIsNoStrangers(t *testing.T) {
	for _, network := range []string{"127.0.0.1", "[::1]"} {
		l, err := net.Listen("tcp", network+":0")
		if err != nil {
			t.Log(err)
			continue
		}
		defer l.Close()
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer far.Close()
		if uid, foreign := foreignPeer(far); foreign {
			t.Errorf("over %s it is said to be user %d's", network, uid)
		}
	}
}

func as16(a netip.AddrPort) []byte {
	b := a.Addr().As16()
	return b[:]
}
