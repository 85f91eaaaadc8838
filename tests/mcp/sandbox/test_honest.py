"""What the sandbox takes away is nothing that a program which computes would miss."""

from qwed_mcp.sandbox import Ended, Limits, sandbox_from
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
    found = sandbox_from(McpSettings())()
    assert not isinstance(found, tuple), found
    outcome = found.start(_PROGRAM, Limits(seconds=30)).wait()
    assert (outcome.stdout, outcome.stderr) == ("3\n1 2\n3 4\n5 6\n7\n8\n9\n", "")
    assert (outcome.ended, outcome.return_code) == (Ended.EXITED, 0)
