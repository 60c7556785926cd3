"""Messages on standard error: one line in a pipe, wrapped between words on a terminal."""

import pytest

from anabranch.cli import messages

Captured = pytest.CaptureFixture[str]

TEXT = "a message about examples/a-file-with-a-long-name.toml that is longer than the terminal"


def test_a_pipe_gets_one_line(capsys: Captured) -> None:
    messages.complain(f"{TEXT}\n  and more")
    assert capsys.readouterr().err == f"anabranch: {TEXT} and more\n"


def test_a_terminal_gets_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    lines = messages.wrapped(TEXT).splitlines()
    assert " ".join(lines) == TEXT
    assert all(len(line) <= 40 for line in lines)
    assert any("examples/a-file-with-a-long-name.toml" in line for line in lines)


def test_control_characters_are_shown_not_obeyed(capsys: Captured) -> None:
    messages.complain('key "\x1b[31mred\x9b" é\N{RIGHT-TO-LEFT OVERRIDE}')
    assert capsys.readouterr().err == 'anabranch: key "\\x1b[31mred\\x9b" é\\u202e\n'
