package sqlite

import "strings"

// columns are those of a table by the statement that made it.
func columns(statement string) (all []Column) {
	_, inside, _ := strings.Cut(statement, "(")
	depth, from := 0, 0
	quote := byte(0)
	for i := 0; i < len(inside) && len(all) < mostColumns; i++ {
		switch c := inside[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')' && depth > 0:
			depth--
		case c == ',' && depth == 0 || c == ')':
			if one, ok := column(inside[from:i]); ok {
				all = append(all, one)
			}
			if from = i + 1; c == ')' {
				return all
			}
		}
	}
	return all
}

// column reads the definition of one column; false for one of a constraint.
func column(text string) (c Column, ok bool) {
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return c, false
	}
	switch strings.ToUpper(fields[0]) {
	case "CONSTRAINT", "PRIMARY", "FOREIGN", "UNIQUE", "CHECK":
		return c, false
	}
	c.Name = strings.Trim(fields[0], "\"'`[]")
	c.rowid = len(fields) > 1 && strings.EqualFold(fields[1], "INTEGER") && strings.Contains(strings.ToUpper(text), "NOT NULL") ||
		strings.Contains(strings.ToUpper(text), "INTEGER PRIMARY KEY")
	return c, true
}
