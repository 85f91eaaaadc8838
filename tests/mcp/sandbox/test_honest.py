"""Programs that only compute work in the sandbox."""

from qwed_mcp.sandbox import EndReason, JobLimits, sandbox_from
from qwed_mcp.settings import McpSettings

_PROGRAM = """
import asyncio, multiprocessing, shutil, sqlite3, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor

async def later():
    await asyncio.sleep(0.001)
    return await asyncio.to_thread(int, "3")

print(asyncio.run(later()))
with ThreadPoolExecutor(4) as pool:
    print(*pool.map(abs, [-1, 2]))
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(*pool.map(abs, [-3, 4]))
print(*multiprocessing.Array("i", [5, 6]))
print(*sqlite3.connect(":memory:").execute("select 7").fetchone())
print(subprocess.run([sys.executable, "-c", "print(8)"], capture_output=True, text=True).stdout, end="")
with tempfile.NamedTemporaryFile() as file:
    file.write(b"9")
    file.flush()
    print(open(shutil.copy2(file.name, "copy")).read())
"""


def test_loops_pools_databases_and_files_of_its_own_are_there() -> None:
    sandbox = sandbox_from(McpSettings())()
    assert not isinstance(sandbox, tuple), sandbox
    outcome = sandbox.start(_PROGRAM, JobLimits(seconds=30)).wait()
    assert (outcome.stdout, outcome.stderr) == ("3\n1 2\n3 4\n5 6\n7\n8\n9\n", "")
    assert (outcome.ended, outcome.return_code) == (EndReason.EXITED, 0)
