"""What a model says becomes a kernel only when it clearly is one (peer faults, F01 to F12)."""

# ruff: noqa: E501 - tables of answers

from __future__ import annotations

import time
from pathlib import PurePosixPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kfd.prompting.answers import MAX_ANSWER_BYTES, Drafted, Rejected, RejectReason, parse
from kfd.tasks.markers import find
from kfd.tasks.report import Problems
from kfd.tasks.spec import KernelFile

HEAD = "#include <cstdint>\n\n"
BODY = (
    'extern "C" int solve(const float *x, float *y, int64_t n) {\n  for (int64_t i = 0; i < n; ++i) {\n'
    "    y[i] = x[i] * 2;\n  }\n  return 0;\n}\n"
)
TAIL = "\nstatic_assert(sizeof(float) == 4);\n"
TEXT = f"{HEAD}// [EVOLVE_START]\n{BODY}// [EVOLVE_END]\n{TAIL}"
BETTER = BODY.replace("  for", "#pragma omp simd\n  for")


def kernel_of(text: str, path: str = "kernel.cpp") -> KernelFile:
    problems = Problems()
    marked = find(text, path, PurePosixPath(path).suffix, problems)
    assert not problems.found
    return KernelFile(path=path, text=text, blocks=tuple(mark.block for mark in marked))


KERNEL = kernel_of(TEXT)


def draft(answer: str, operator: str = "rewrite", kernel: KernelFile = KERNEL, finish: str = "stop") -> KernelFile:
    result = parse(answer, finish, operator, kernel, "solve")
    assert isinstance(result, Drafted), result
    return result.kernel


def refusal(answer: str, operator: str = "rewrite", kernel: KernelFile = KERNEL, finish: str = "stop") -> Rejected:
    result = parse(answer, finish, operator, kernel, "solve")
    assert isinstance(result, Rejected), result
    return result


def fenced(code: str, tag: str = "cpp", fence: str = "```") -> str:
    return f"{fence}{tag}\n{code}{fence}\n"


def edit(search: str, replace: str) -> str:
    return f"<<<<<<< SEARCH\n{search}=======\n{replace}>>>>>>> REPLACE\n"


# ---- F01, prose ----


@pytest.mark.parametrize("operator", ["rewrite", "repair", "patch"])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("", RejectReason.NO_CODE),
        (" \n\t", RejectReason.NO_CODE),
        ("The kernel is already optimal. int solve() { return 0; }", RejectReason.NO_CODE),
        ("I'm sorry, but I can't help with that.", RejectReason.REFUSED),
        ("I cannot assist with this request.", RejectReason.REFUSED),
    ],
)
def test_f01_prose_never_becomes_a_program(answer: str, reason: RejectReason, operator: str) -> None:
    assert refusal(answer, operator).reason is reason


# ---- F02, tags ----


@pytest.mark.parametrize(
    "tag", ["", "cpp", "c++", "CUDA title=x", "C", "cpp {.numberLines}", " cpp", "python", "kernel.cpp", "cpp\r"]
)
@pytest.mark.parametrize("fence", ["```", "````", "~~~"])
def test_f02_no_tag_stays_in_the_code(tag: str, fence: str) -> None:
    assert draft("Here it is.\n" + fenced(BETTER, tag, fence) + "Done.").contents() == (BETTER,)


def test_f02_a_tag_that_slipped_onto_the_first_line_is_dropped() -> None:
    assert draft(fenced("cpp\n" + BETTER, "")).contents() == (BETTER,)


@pytest.mark.parametrize("indent", ["  ", "    ", "\t", "> "])
def test_f02_an_indented_fence_gives_its_code_without_that_indentation(indent: str) -> None:
    answer = "".join(f"{indent}{line}\n" for line in fenced(BETTER).splitlines())
    assert draft(answer).contents() == (BETTER,)


def test_f02_backticks_in_comments_and_shorter_fences_stay_code() -> None:
    code = BETTER + "// see ```this``` here\n"
    assert draft(fenced(code, "cpp", "````")).contents() == (code,)


# ---- F03, several fences ----


def test_f03_the_new_block_wins_over_a_quotation_of_the_old_one_in_either_order() -> None:
    for answer in (fenced(BODY) + fenced(BETTER), fenced(BETTER) + fenced(BODY), fenced(TEXT) + fenced(BETTER)):
        assert draft(answer).contents() == (BETTER,)


def test_f03_the_block_that_holds_the_entry_point_is_taken() -> None:
    answer = "The old line\n" + fenced("y[i] = x[i] * 2;\n") + "becomes\n" + fenced(BETTER) + fenced("g++ -O3\n", "sh")
    assert draft(answer).contents() == (BETTER,)


def test_f03_an_entry_point_in_a_comment_or_a_string_is_none() -> None:
    decoy = '// solve(x)\nconst char *s = "solve(x)";\n'
    assert draft(fenced(decoy) + fenced(BETTER)).contents() == (BETTER,)
    assert refusal(fenced(decoy)).reason is RejectReason.MISSING_ENTRY


def test_f03_two_different_new_versions_are_ambiguous_and_equal_ones_are_not() -> None:
    other = BETTER.replace("* 2", "+ x[i]")
    assert refusal(fenced(BETTER) + fenced(other)).reason is RejectReason.AMBIGUOUS
    assert draft(fenced(BETTER) + fenced(BETTER)).contents() == (BETTER,)


@pytest.mark.parametrize("tag", ["think", "thinking", "reasoning"])
def test_f03_drafts_among_a_models_thoughts_are_not_its_answer(tag: str) -> None:
    draft_code = fenced(BETTER.replace("* 2", "* 4"))
    assert draft(f"\n<{tag}>\nPerhaps\n{draft_code}```\nor\n</{tag}>\n{fenced(BETTER)}").contents() == (BETTER,)
    assert refusal(f"<{tag}>\nPerhaps\n{draft_code}").reason is RejectReason.TRUNCATED
    assert refusal(f"<{tag}>\n{draft_code}</{tag}>\nDone.").reason is RejectReason.NO_CODE


# ---- F04, cut off ----


@pytest.mark.parametrize("finish", ["length", "max_tokens", "LENGTH"])
def test_f04_an_answer_cut_by_its_limit_is_no_candidate_even_if_it_looks_whole(finish: str) -> None:
    assert refusal(fenced(BETTER), finish=finish).reason is RejectReason.TRUNCATED


@pytest.mark.parametrize("finish", ["content_filter", "refusal"])
def test_f04_a_withheld_answer_is_a_refusal(finish: str) -> None:
    assert refusal(fenced(BETTER), finish=finish).reason is RejectReason.REFUSED


def test_f04_an_unclosed_fence_is_truncated() -> None:
    assert refusal("```cpp\n" + BETTER).reason is RejectReason.TRUNCATED
    assert refusal("```cpp\n" + BETTER + "```cpp\n" + BETTER + "```\n").reason is RejectReason.TRUNCATED
    assert refusal(fenced(BODY) + "```cpp\n" + BETTER[:40]).reason is RejectReason.TRUNCATED
    assert refusal("````cpp\n" + BETTER + "```\n").reason is RejectReason.TRUNCATED


@pytest.mark.parametrize("cut", ["<<<<<<< SEARCH\n    y[i]", edit("a\n", "b\n").removesuffix(">>>>>>> REPLACE\n")])
def test_f04_an_unfinished_edit_is_truncated(cut: str) -> None:
    assert refusal(cut, "patch").reason is RejectReason.TRUNCATED
    assert refusal(edit("  return 0;\n", "  return 0 + 0;\n") + cut, "patch").reason is RejectReason.TRUNCATED


# ---- F06, line ends and trailing blanks ----


def test_f06_crlf_and_trailing_blanks_match_and_the_files_own_line_ends_stay() -> None:
    patch = edit("    y[i] = x[i] * 2;  \n", "    y[i] = x[i] + x[i];\n").replace("\n", "\r\n")
    assert draft(patch, "patch").text == TEXT.replace("x[i] * 2", "x[i] + x[i]")
    crlf = kernel_of(TEXT.replace("\n", "\r\n"))
    child = draft(patch.replace("\r\n", "\n"), "patch", crlf)
    assert child.text == TEXT.replace("x[i] * 2", "x[i] + x[i]").replace("\n", "\r\n")
    assert draft(fenced(BETTER).replace("\n", "\r\n")).contents() == (BETTER,)
    assert draft(fenced(BETTER), kernel=crlf).contents() == (BETTER.replace("\n", "\r\n"),)


def test_f06_an_exact_match_wins_over_a_loose_one() -> None:
    kernel = kernel_of(TEXT.replace("  return 0;\n", "  n = 1; \n  n = 1;\n  return 0;\n"))
    child = draft(edit("  n = 1;\n", "  n = 2;\n"), "patch", kernel)
    assert "  n = 1; \n  n = 2;\n" in child.text


def test_f06_fences_around_and_inside_edits_are_no_part_of_them() -> None:
    inner = "<<<<<<< SEARCH\n```cpp\n  return 0;\n```\n=======\n```cpp\n  return n < 0;\n```\n>>>>>>> REPLACE\n"
    for answer in (fenced(edit("  return 0;\n", "  return n < 0;\n"), "diff"), inner):
        assert draft(answer, "patch").text == TEXT.replace("return 0", "return n < 0")


# ---- F07, unmatched ----


def test_f07_an_unmatched_search_is_rejected_with_the_nearest_lines() -> None:
    result = refusal(edit("    y[i] = x[i] * 3;\n", "    y[i] = 0;\n"), "patch")
    assert result.reason is RejectReason.EDIT_UNMATCHED
    assert "y[i] = x[i] * 2;" in result.detail


def test_f07_one_unmatched_edit_spoils_the_answer() -> None:
    answer = edit("  return 0;\n", "  return n < 0;\n") + edit("nowhere\n", "x\n")
    assert refusal(answer, "patch").reason is RejectReason.EDIT_UNMATCHED


def test_f07_a_search_that_matches_twice_is_ambiguous() -> None:
    kernel = kernel_of(TEXT.replace("  return 0;\n", "  n = 1;\n  n = 1;\n  return 0;\n"))
    assert refusal(edit("  n = 1;\n", "  n = 2;\n"), "patch", kernel).reason is RejectReason.EDIT_AMBIGUOUS
    both = draft(edit("  n = 1;\n  n = 1;\n", "  n = 2;\n"), "patch", kernel)
    assert both.text == TEXT.replace("  return 0;\n", "  n = 2;\n  return 0;\n")


def test_f07_half_a_line_is_no_match() -> None:
    assert refusal(edit("return 0;\n", "return 1;\n"), "patch").reason is RejectReason.EDIT_UNMATCHED


def test_f07_edits_apply_in_order_each_to_what_the_one_before_left() -> None:
    answer = edit("  return 0;\n", "  return n < 0;\n") + edit("  return n < 0;\n", "  return n < -1;\n")
    assert "return n < -1;" in draft(answer, "patch").text


def test_f07_an_empty_search_fills_an_empty_block_and_nothing_else() -> None:
    empty = kernel_of(f"{HEAD}// [EVOLVE_START]\n// [EVOLVE_END]\n")
    assert draft(edit("", BODY), "patch", empty).contents() == (BODY,)
    assert refusal(edit("", BODY), "patch").reason is RejectReason.EDIT_AMBIGUOUS


# ---- F09, no-op ----


@pytest.mark.parametrize(
    "answer",
    [
        fenced(BODY),
        fenced(TEXT),
        fenced(BODY.replace("  for", "  // faster now\n  for")),
        fenced(BODY.replace("x[i] * 2", "x[i]*2")),
        fenced(BODY + "\n\n"),
    ],
)
def test_f09_a_rewrite_that_changes_only_comments_and_spacing_is_a_no_op(answer: str) -> None:
    assert refusal(answer).reason is RejectReason.NO_OP


def test_f09_equal_search_and_replace_is_a_no_op_but_not_beside_a_real_edit() -> None:
    same = edit("  return 0;\n", "  return 0;\n")
    assert refusal(same, "patch").reason is RejectReason.NO_OP
    assert "* 3" in draft(same + edit("    y[i] = x[i] * 2;\n", "    y[i] = x[i] * 3;\n"), "patch").text


# ---- F11, protected text ----


def test_f11_an_edit_outside_the_block_is_rejected() -> None:
    for search in (
        "#include <cstdint>\n",
        "static_assert(sizeof(float) == 4);\n",
        "  return 0;\n}\n// [EVOLVE_END]\n",
    ):
        assert refusal(edit(search, "\n"), "patch").reason is RejectReason.OUTSIDE_BLOCK


def test_f11_a_complete_file_is_accepted_only_when_the_rest_is_unchanged() -> None:
    assert draft(fenced(TEXT.replace(BODY, BETTER))).contents() == (BETTER,)
    assert draft(fenced(TEXT.replace(BODY, BETTER).replace("\n", "  \n"))).text.count("static_assert") == 1
    changed = TEXT.replace(BODY, BETTER).replace("static_assert(sizeof(float) == 4);", "")
    assert refusal(fenced(changed)).reason is RejectReason.OUTSIDE_BLOCK
    assert refusal(fenced("#include <cmath>\n" + TEXT.replace(BODY, BETTER))).reason is RejectReason.OUTSIDE_BLOCK


def test_f11_markers_alone_around_the_new_contents_are_accepted() -> None:
    assert draft(fenced(f"// [EVOLVE_START]\n{BETTER}// [EVOLVE_END]\n")).text == TEXT.replace(BODY, BETTER)


def test_f11_a_complete_file_without_markers_is_reduced_to_the_block() -> None:
    assert draft(fenced(HEAD + BETTER + TAIL)).text == TEXT.replace(BODY, BETTER)


@pytest.mark.parametrize(
    "ending", ["/* open\n", "#if 0\n", "#endif\n", 'auto s = R"(open\n', "// continued \\\n", "#else\n", "int a; \\\n"]
)
def test_f11_code_that_would_swallow_the_text_after_the_block_is_rejected(ending: str) -> None:
    assert refusal(fenced(BETTER + ending)).reason is RejectReason.OUTSIDE_BLOCK


def test_f11_conditionals_and_literals_that_close_are_no_swallowing() -> None:
    code = BETTER + '#ifdef X\nint q = 1\'000;\n#else\nconst char *s = "/* // \\" #if";\n#endif\nchar c = \'"\';\n'
    assert draft(fenced(code)).contents() == (code,)


def test_f11_whatever_is_accepted_leaves_everything_outside_the_blocks_as_it_was() -> None:
    child = draft(fenced(BETTER))
    assert child.text.startswith(TEXT[: KERNEL.blocks[0].start])
    assert child.text.endswith(TEXT[KERNEL.blocks[0].end :])
    assert kernel_of(child.text) == child


# ---- F12, markers ----


@pytest.mark.parametrize(
    "code",
    [
        BETTER + "// [EVOLVE_END]\n",
        "// [EVOLVE_START]\n" + BETTER,
        f"// [EVOLVE_END]\n{BETTER}// [EVOLVE_START]\n",
        f"// [EVOLVE_START]\n// [EVOLVE_START]\n{BETTER}// [EVOLVE_END]\n",
        f"// [EVOLVE_START]\n{BETTER}// [EVOLVE_END]\n// [EVOLVE_START]\nint x;\n// [EVOLVE_END]\n",
        BETTER + "// EVOLVE-BLOCK-END\n",
        BETTER + "// [evolve end]\n",
    ],
)
def test_f12_half_doubled_or_foreign_markers_are_rejected(code: str) -> None:
    assert refusal(fenced(code)).reason is RejectReason.MARKERS


def test_f12_markers_smuggled_in_by_an_edit_are_rejected() -> None:
    answer = edit("  return 0;\n", "  return 0;\n// [EVOLVE_END]\n")
    assert refusal(answer, "patch").reason is RejectReason.MARKERS


# ---- F24, edits and diffs where code is due ----


@pytest.mark.parametrize(
    "code",
    [
        edit("  return 0;\n", "  return 1;\n"),
        "@@ -1,3 +1,3 @@\n" + BETTER,
        "--- a/kernel.cpp\n+++ b/kernel.cpp\n@@ -4 +4 @@\n-  return 0;\n+  return solve(x, y, n);\n",
        BETTER + "=======\n",
    ],
)
def test_f24_an_edit_or_a_diff_is_not_taken_for_code(code: str) -> None:
    assert refusal(fenced(code, "diff")).reason is RejectReason.AMBIGUOUS


def test_f24_an_edit_inside_an_edit_is_not_taken_for_code() -> None:
    answer = edit("  return 0;\n", "  return 1;\n=======\n  return 2;\n")
    assert refusal(answer, "patch").reason is RejectReason.AMBIGUOUS


# ---- several blocks ----

TWO = kernel_of(
    f"// [EVOLVE_START]\nconst int W = 4;\n// [EVOLVE_END]\nint mid;\n// [EVOLVE_START]\n{BODY}// [EVOLVE_END]\n"
)


def test_several_blocks_take_one_fence_each_in_order() -> None:
    assert draft(fenced("const int W = 8;\n") + fenced(BETTER), kernel=TWO).contents() == ("const int W = 8;\n", BETTER)
    assert refusal(fenced(BETTER), kernel=TWO).reason is RejectReason.AMBIGUOUS
    assert refusal(fenced("a\n") + fenced("b\n") + fenced(BETTER), kernel=TWO).reason is RejectReason.AMBIGUOUS
    assert draft(fenced(TWO.text.replace("W = 4", "W = 16")), kernel=TWO).contents() == ("const int W = 16;\n", BODY)


def test_an_edit_is_looked_for_in_all_blocks_and_never_across_them() -> None:
    assert "W = 2" in draft(edit("const int W = 4;\n", "const int W = 2;\n"), "patch", TWO).text
    across = edit("const int W = 4;\n// [EVOLVE_END]\nint mid;\n", "int mid;\n")
    assert refusal(across, "patch", TWO).reason is RejectReason.OUTSIDE_BLOCK


# ---- size, characters, entry ----


def test_too_long_is_decided_before_anything_is_parsed() -> None:
    assert refusal(fenced(BETTER + "x" * MAX_ANSWER_BYTES)).reason is RejectReason.TOO_LONG
    assert refusal("\u20ac" * (MAX_ANSWER_BYTES // 3 + 1)).reason is RejectReason.TOO_LONG
    assert refusal("".join(edit(f"{n}\n", "x\n") for n in range(100)), "patch").reason is RejectReason.TOO_LONG


@pytest.mark.parametrize("character", ["\0", "\x1b", "\x07", "\x7f", "\ud800"])
def test_control_characters_are_not_text(character: str) -> None:
    assert refusal(fenced(BETTER + f"// {character}\n")).reason is RejectReason.NOT_TEXT


def test_a_file_without_its_entry_point_is_rejected() -> None:
    assert refusal(fenced(BETTER.replace("solve", "resolve"))).reason is RejectReason.MISSING_ENTRY
    assert refusal(fenced("// nothing left\n")).reason is RejectReason.MISSING_ENTRY


# ---- laws ----

_PIECES = st.sampled_from(
    ["```", "```cpp\n", "~~~", "\n", "<<<<<<< SEARCH\n", "=======\n", ">>>>>>> REPLACE\n", "// [EVOLVE_START]\n", BODY,
     "// [EVOLVE_END]\n", "  return 0;\n", "solve(", '"', "'", "/*", "*/", 'R"(', "#if 1\n", "#endif\n", "\\", "\r\n", BETTER]
)  # fmt: skip
_ANSWERS = st.one_of(
    st.text(max_size=300), st.lists(st.one_of(_PIECES, st.text(max_size=10)), max_size=12).map("".join)
)


@settings(max_examples=400, deadline=None)
@given(_ANSWERS, st.sampled_from(["rewrite", "repair", "patch", "crossover"]), st.sampled_from([KERNEL, TWO]))
@example("```\n" + BETTER + "```", "rewrite", KERNEL)
def test_any_answer_is_drafted_or_rejected_and_never_changes_the_text_outside(
    answer: str, operator: str, kernel: KernelFile
) -> None:
    result = parse(answer, "stop", operator, kernel, "solve")
    if isinstance(result, Rejected):
        assert result.detail
        return
    child = result.kernel
    assert kernel_of(child.text) == child
    assert child.with_contents(kernel.contents()).text == kernel.text


HOSTILE = [
    "```\n" * 200_000, "~~~x\n" * 150_000, "`" * 900_000, "<<<<<<< SEARCH\n" * 60_000, "=======\n" * 100_000,
    fenced("/*" * 400_000), fenced('"\\' * 400_000), fenced("R\"(" * 250_000), fenced("'" * 800_000), fenced("\\\n" * 400_000),
    fenced("//\\\n" * 200_000), fenced("#if\n" * 200_000), fenced("1'" * 400_000), fenced("[" * 800_000), fenced("[ " * 400_000),
    fenced('u8R"' * 200_000), fenced("solve" * 150_000), fenced("(" * 800_000), " " * 900_000 + "x", "> " * 400_000,
    edit("x\n" * 200_000, "y\n"), edit("  return 0;\n" * 40_000, "y\n"), "".join(edit("  return 0;\n", "  return 0;\n" * 200) for _ in range(60)),
    fenced(" \t" * 400_000), "I " * 400_000, fenced("// [EVOLVE_START]\n" * 50_000), fenced("[ EVOLVE" * 80_000), fenced("<" * 800_000),
]  # fmt: skip


@pytest.mark.parametrize("operator", ["rewrite", "patch"])
@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_a_megabyte_of_hostile_text_is_rejected_in_linear_time(number: int, operator: str) -> None:
    answer = HOSTILE[number]
    assert len(answer) <= MAX_ANSWER_BYTES
    start = time.process_time()
    parse(answer, "stop", operator, KERNEL, "solve")
    # A megabyte in one pass takes well below a second of CPU; anything quadratic takes minutes.
    assert time.process_time() - start < 4
