"""What an attribute's own name tells, whatever it is an attribute of."""

from qwed.guards._python.tables import words
from qwed.guards.code_words import Danger
from qwed.words import EffectKind

INNER = words("""
__subclasses__ __globals__ __builtins__ __import__ __loader__ __spec__ __base__ __closure__ __code__ __thisclass__
__self_class__ __build_class__ __getattribute__ __setattr__ __delattr__ __main__ __func_globals__
gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await ag_frame ag_code tb_frame f_globals f_locals f_builtins f_back
f_code f_trace func_globals func_code im_func im_self co_code co_consts cell_contents _Printer__setup
_Printer__filenames load_module exec_module
""")
"""Lead to the interpreter's own objects from anywhere."""

WALKS = words("__class__ __dict__ __mro__ __bases__ mro __self__ __func__")
"""Ordinary on a value of the program's own, a way in on a literal or a name of the language."""

REACHING = INNER | WALKS

CODE_FACTS = words(
    "co_name co_varnames co_argcount co_filename co_firstlineno co_flags co_kwonlyargcount co_posonlyargcount"
)
"""What may be asked of `f.__code__`."""

CLASS_FACTS = words("__name__ __qualname__ __module__ __doc__")
"""What may be asked of the class of anything: plain text."""

ATTRIBUTE_CALLS = words("__setattr__ __delattr__ __getattribute__ __getattr__")
"""Allowed on the program's own objects, where the attribute they name is no inner one."""

PLAIN_PRIVATE = words(
    "_replace _asdict _fields _make _field_defaults _value_ _name_ _missing_ _member_map_ _exit _generate_next_value_"
)
"""Names with an underscore that are an interface."""

DANGEROUS_METHODS = {
    "subprocess_exec": Danger.PROCESS,
    "subprocess_shell": Danger.PROCESS,
    "load_extension": Danger.DYNAMIC,
    "enable_load_extension": Danger.DYNAMIC,
    "read_pickle": Danger.DESERIALISE,
    "create_subprocess_exec": Danger.PROCESS,
    "create_subprocess_shell": Danger.PROCESS,
    "exec_command": Danger.PROCESS,
    "invoke_shell": Danger.PROCESS,
    "popen": Danger.PROCESS,
    "Popen": Danger.PROCESS,
    "check_output": Danger.PROCESS,
    "getoutput": Danger.PROCESS,
    "system": Danger.PROCESS,
}
"""Methods that nothing but a danger is called by."""


def _kinds(**rows: str) -> dict[str, EffectKind]:
    return {name: EffectKind[kind] for kind, names in rows.items() for name in names.split()}


TELLING_METHODS: dict[str, EffectKind] = _kinds(
    READ="read_text read_bytes",
    WRITE="""write_text write_bytes symlink_to hardlink_to to_csv to_excel to_parquet to_feather to_hdf to_pickle
    to_stata     extractall savefig save_pretrained write_parquet write_csv imwrite""",
    DELETE="unlink rmtree",
    NETWORK="urlopen sendall connect_ex sendto recvfrom create_datagram_endpoint",
    COMMUNICATE="sendmail send_message",
)
"""Methods whose name tells what they do even where nobody knows the value."""

DOUBTFUL_METHODS: dict[str, dict[str, EffectKind]] = {
    "pathlib": _kinds(
        READ="iterdir rglob exists is_file is_dir", WRITE="mkdir touch rename open chmod", DELETE="rmdir"
    ),
    "os": _kinds(READ="iterdir rglob", WRITE="mkdir touch", DELETE="rmdir"),
    "pandas": _kinds(WRITE="to_json to_html to_sql to_xml to_latex"),
    "numpy": _kinds(WRITE="tofile"),
    "requests": _kinds(NETWORK="post put patch"),
    "socket": _kinds(NETWORK="connect bind listen accept recv"),
    "zipfile": _kinds(WRITE="extract"),
    "tarfile": _kinds(WRITE="extract"),
}
"""Methods that mean this on a value nobody knows only where the program uses that library."""

TEXT_CODE = words("query eval")
"""Methods of a data frame that take an expression as text: harmless where it is written out and plain."""
