"""Effects and violations that the name of an attribute implies, whatever its owner is."""

from qwed.guards._python.library_rules import words
from qwed.guards.code_findings import ViolationKind
from qwed.model import EffectKind

INTERNALS = words("""
__subclasses__ __globals__ __builtins__ __import__ __loader__ __spec__ __base__ __closure__ __code__ __thisclass__
__self_class__ __build_class__ __getattribute__ __setattr__ __delattr__ __main__ __func_globals__
gi_frame gi_code gi_yieldfrom cr_frame cr_code cr_await ag_frame ag_code tb_frame f_globals f_locals f_builtins f_back
f_code f_trace func_globals func_code im_func im_self co_code co_consts cell_contents _Printer__setup
_Printer__filenames load_module exec_module from_address in_dll
__array_interface__ __array_struct__ __cuda_array_interface__
""")
"""Attributes that give access to interpreter objects from anywhere."""

TRAVERSALS = words("__class__ __dict__ __mro__ __bases__ mro __self__ __func__")
"""Attributes that are ordinary on the program's own values, but reach interpreter objects on a literal or a builtin."""

REACHING = INTERNALS | TRAVERSALS

CODE_FACTS = words(
    "co_name co_varnames co_argcount co_filename co_firstlineno co_flags co_kwonlyargcount co_posonlyargcount"
)
"""Harmless attributes of `f.__code__`."""

CLASS_FACTS = words("__name__ __qualname__ __module__ __doc__")
"""Harmless attributes of a class: plain text."""

ATTRIBUTE_CALLS = words("__setattr__ __delattr__ __getattribute__ __getattr__")
"""Methods allowed on the program's own objects if the attribute they name is not internal."""

PLAIN_PRIVATE = words("""
_replace _asdict _fields _make _field_defaults _value_ _name_ _missing_
_member_map_ _exit _generate_next_value_ _merge
""")
"""Names with an underscore that are a public interface."""

DANGEROUS_METHODS = {
    "subprocess_exec": ViolationKind.PROCESS,
    "subprocess_shell": ViolationKind.PROCESS,
    "load_extension": ViolationKind.DYNAMIC,
    "enable_load_extension": ViolationKind.DYNAMIC,
    "read_pickle": ViolationKind.DESERIALISE,
    "create_subprocess_exec": ViolationKind.PROCESS,
    "create_subprocess_shell": ViolationKind.PROCESS,
    "exec_command": ViolationKind.PROCESS,
    "invoke_shell": ViolationKind.PROCESS,
    "popen": ViolationKind.PROCESS,
    "Popen": ViolationKind.PROCESS,
    "check_output": ViolationKind.PROCESS,
    "getoutput": ViolationKind.PROCESS,
    "system": ViolationKind.PROCESS,
}
"""Methods whose name implies a violation."""


def _kinds(**rows: str) -> dict[str, EffectKind]:
    return {name: EffectKind[kind] for kind, names in rows.items() for name in names.split()}


METHOD_EFFECTS: dict[str, EffectKind] = _kinds(
    READ="read_text read_bytes",
    WRITE="""write_text write_bytes symlink_to hardlink_to to_csv to_excel to_parquet to_feather to_hdf to_pickle
    to_stata     extractall savefig save_pretrained write_parquet write_csv imwrite""",
    DELETE="unlink rmtree",
    NETWORK="urlopen sendall connect_ex sendto recvfrom create_datagram_endpoint",
    COMMUNICATE="sendmail send_message",
)
"""Methods whose name implies an effect even if the value is unknown."""

_PATH_METHODS = _kinds(
    READ="iterdir rglob exists is_file is_dir", WRITE="mkdir touch rename open chmod", DELETE="rmdir"
)
LIBRARY_METHOD_EFFECTS: dict[str, dict[str, EffectKind]] = {
    "pathlib": _PATH_METHODS,
    "pydantic": _PATH_METHODS,
    "platformdirs": _PATH_METHODS,
    "os": _kinds(READ="iterdir rglob", WRITE="mkdir touch", DELETE="rmdir"),
    "pandas": _kinds(WRITE="to_json to_html to_sql to_xml to_latex"),
    "numpy": _kinds(WRITE="tofile"),
    "requests": _kinds(NETWORK="post put patch"),
    "socket": _kinds(NETWORK="connect bind listen accept recv"),
    "zipfile": _kinds(WRITE="extract"),
    "tarfile": _kinds(WRITE="extract"),
}
"""Methods that imply an effect on an unknown value only if the program uses the library."""

TEXT_CODE = words("query eval")
"""Methods of a data frame that take an expression as text: harmless if it is a plain literal."""

SETTINGS = words("""
sys.stdin sys.stdout sys.stderr sys.argv sys.excepthook sys.displayhook sys.unraisablehook sys.tracebacklimit
sys.dont_write_bytecode sys.ps1 sys.ps2 threading.excepthook logging.raiseExceptions logging.lastResort
warnings.formatwarning warnings.showwarning json.encoder.FLOAT_REPR matplotlib.rcParams
torch.backends.cudnn.deterministic torch.backends.cudnn.benchmark torch.backends.cudnn.enabled
mpmath.mp.dps mpmath.mp.prec mpmath.mp.pretty mpmath.mp.trap_complex mpmath.iv.dps mpmath.iv.prec
""")
"""Names of modules that programs set. Replacing any other changes what the code of libraries calls."""

FIELD_OBJECTS = words("""
dataclasses.fields dataclasses.Field attr.fields attr.fields_dict attr.Attribute attrs.fields attrs.fields_dict
""")
"""Names that give access to the fields of a class: libraries compose code of the name of a field."""

ASSIGNED_EFFECTS = {
    "shlex": {"source": EffectKind.READ},
    "argparse": {"fromfile_prefix_chars": EffectKind.READ},
    "click": {"auto_envvar_prefix": EffectKind.SECRET, "envvar": EffectKind.SECRET},
    "typer": {"auto_envvar_prefix": EffectKind.SECRET, "envvar": EffectKind.SECRET},
}
"""Attributes, by library, that have an effect when a program assigns them."""

CLASS_DATA = words("__annotations__ __match_args__ __annotate__ __type_params__ __dataclass_fields__ __prepare__")
"""Names of a class that decide how its objects are built or matched: libraries look up the names that they hold, or
compose code of them."""
