"""Option grammars of command-line programs: the loader, the parser, and the effects of known commands."""

import pytest

from qwed.engines.shell import findings
from qwed.guards._shell.command_model import Word
from qwed.guards._shell.grammar import roles
from qwed.guards._shell.grammar.loader import GrammarError, Library, library
from qwed.guards._shell.grammar.parser import parse
from qwed.model import Risk, risk_of
from tests.support.case_tables import each, rows

SAMPLE = """
%gnu
  is abbrev
  about --help --version
sort gsort : - : read*
  use gnu
  flag -r --reverse --recheck
  text -k --key
  write -o --output
  run --compress-program
tool : -
  text -l --log-level
  ^text -C --context
  > ps list : read
    flag -a
  > rm : delete : text+
    flag -f
  > exec : execute : text command
    is posix
    flag -i
  > get-* : network : text?
  > get-secret* : secret : text*
pack : unresolved : read*
  is bundle
  text -f
  mode -c : - : read*
  mode -x : write
  flag -v
copy : - : read+ write
  mode:write -t : - : read+
words : -
  is words
  text -in
  flag -x
"""


def sample(line):
    grammars = Library()
    grammars.add_file("sample", SAMPLE)
    name, *arguments = line.split()
    return parse(grammars.program(name), [Word(text) for text in arguments])


@each(
    ("line", "values", "operands"),
    [
        ("sort -rk2 -o out a b", [("-k", "2"), ("-o", "out")], [("read", "a"), ("read", "b")]),
        ("sort --outp=x a", [("--output", "x")], [("read", "a")]),
        ("sort a --key 1", [("--key", "1")], [("read", "a")]),
        ("sort -- -r", [], [("read", "-r")]),
        ("tool -l info rm -f db", [("-l", "info")], [("text", "db")]),
        ("tool rm -C here db", [("-C", "here")], [("text", "db")]),
        ("tool exec c rm -f x", [], [("text", "c"), ("command", "rm")]),
        ("pack cf a.tar b", [("-f", "a.tar")], [("read", "b")]),
        ("copy a b c", [], [("read", "a"), ("read", "b"), ("write", "c")]),
        ("copy -t d a b", [("-t", "d")], [("read", "a"), ("read", "b")]),
        ("words -in f -x", [("-in", "f")], []),
    ],
)
def test_options_values_and_operands_are_told_apart(line, values, operands):
    parsed = sample(line)
    assert list(parsed.problems) == []
    assert [(value.option, value.word.text) for value in parsed.values] == values
    assert [(argument.role, argument.word.text) for argument in parsed.arguments] == operands


@each(
    ("line", "problem"),
    [
        ("sort --no-such a", "`--no-such` is not a known option of `sort`"),
        ("sort -x a", "`-x` is not a known option of `sort`"),
        ("sort -k", "`-k` of `sort` needs a value"),
        ("sort --reverse=x a", "`--reverse` of `sort` has no value"),
        ("tool frob", "`frob` is not a known subcommand of `tool`"),
        ("tool rm", "`tool rm` with 0 operands is not known"),
        ("tool ps x", "`tool ps` with 1 operands is not known"),
        ("pack -c -x", "`pack` is given options that contradict each other"),
        ("words -xin f", "`-xin` is not a known option of `words`"),
    ],
)
def test_what_is_not_understood_is_a_problem_that_names_it(line, problem):
    assert list(sample(line).problems) == [problem]


@each("command", ["git diff", "az vm list", "gh pr list"])
def test_a_problem_names_the_subcommand_as_it_is_written(command: str) -> None:
    assert findings(f"{command} -y").unresolved[0] == f"`-y` is not a known option of `{command}`"


def test_an_abbreviation_that_fits_options_of_different_meaning_is_ambiguous():
    grammars = Library()
    grammars.add_file("sample", "a : - : read*\n  is abbrev\n  flag --color\n  write --copy\n")
    parsed = parse(grammars.program("a"), [Word("--co"), Word("x")])
    assert "`--co` of `a` is ambiguous" in parsed.problems


def test_the_longest_pattern_of_subcommands_applies():
    assert sample("tool get-x").outcome.effects == ("network",)
    assert sample("tool get-secret-value").outcome.effects == ("secret",)


def test_help_as_the_only_argument_prints_and_exits():
    assert sample("sort --help").is_about
    assert not sample("sort --help a").is_about


@each(
    ("text", "reason"),
    [
        ("a : - : reed*\n", "`reed` is not a known role"),
        ("a : raed\n", "`raed` is not a known effect"),
        ("a : - : read*\n  flag -a -a\n", "`-a` is listed twice"),
        ("a : - : read*\n  flag -a\n  text -a\n", "`-a` is listed twice"),
        ("a : - : read*\n  is lazy\n", "`lazy` is not a known trait"),
        ("a : - : read*\n  use none\n", "`none` is not a template"),
        ("%t\n  use t\na : -\n  use t\n", "`t` is not a template"),
        ("a : - : read*\n  flag reverse\n", "`reverse` is not an option"),
        ("a : - : read* write*\n", "only one operand may repeat"),
        ("a : - : read*\n  mode -l\n", "a mode, and nothing else, has effects"),
        ("a : -\n  > b : read\n  > b : read\n", "`b` is listed twice"),
        ("a : - : read*\n  is unparsed\n", "only the arguments of a critical command"),
        ("a : - : read*\n  flag -a\n    flag -b\n", "only a subcommand has lines of its own"),
    ],
)
def test_a_line_that_cannot_be_understood_names_its_place(text, reason):
    grammars = Library()
    grammars.add_file("bad", text)
    with pytest.raises(GrammarError, match=r"bad:\d+: ") as error:
        grammars.program("a")
    assert reason in str(error.value)


def test_a_program_is_described_once():
    grammars = Library()
    grammars.add_file("one", "a : -\n")
    with pytest.raises(GrammarError, match="`a` is described twice"):
        grammars.add_file("two", "a : -\n")


def count(command):
    """Return the number of subcommands below a command, each complete."""
    command.complete()
    subcommands = {id(inner): inner for inner in command.subcommands.values()}.values()
    return 1 + sum(map(count, subcommands))


def test_every_grammar_is_valid_and_there_are_many():
    grammars = library()
    blocks = {id(block): name for name, block in grammars.blocks.items()}
    assert len(grammars.blocks) >= 1_400
    assert sum(count(grammars.program(name)) for name in blocks.values()) >= 2_500


def used_roles(command):
    """Return the roles of the options and operands of a command and its subcommands."""
    command.complete()
    options = command.options.values()
    outcomes = [*command.outcomes, *(outcome for option in options for outcome in option.outcomes)]
    own = {role for option in options for role in option.roles}
    own |= {role for outcome in outcomes for slot in outcome.slots for role in slot.roles}
    distinct = {id(inner): inner for inner in command.subcommands.values()}.values()
    return own.union(*map(used_roles, distinct))


def test_every_role_is_used():
    grammars = library()
    names = {id(block): name for name, block in grammars.blocks.items()}.values()
    used = set().union(*(used_roles(grammars.program(name)) for name in names))
    # Options that are not listed get this role where a command accepts them.
    assert used | {"parameter"} == roles.ROLES.keys()


@each("row", rows("shell_grammar_attacks.jsonl"), ids=lambda row: ascii(row["command"])[:60])
def test_an_option_value_is_never_taken_for_a_harmless_verb(row):
    result = findings(row["command"])
    assert risk_of(result.effects) >= Risk.HIGH


@each("row", rows("shell_grammar_honest.jsonl"), ids=lambda row: ascii(row["command"])[:60])
def test_asking_is_no_more_than_a_read(row):
    result = findings(row["command"])
    assert result.unresolved == result.violations == ()
    assert risk_of(result.effects) <= Risk[row["risk"].upper()]
