"""The libraries a verification is written with, row by row: what computes is named, all the rest of QWED is unknown."""

TABLE = """
UNKNOWN : qwed_new qwed_sdk qwed_legal qwed_finance qwed_ucp qwed_tax
HARMLESS qwed_new.: core.tool_approval.ToolApproval core.tool_approval.ToolApprovalSystem
 engines.logic_engine.LogicResult engines.logic_engine.verify_logic_statement
 engines.math_engine.verify_math_expression guards.code_guard.CodeGuard guards.code_guard.CodeSafety
 guards.sql_guard.SQLGuard guards.sql_guard.SQLSafety
HARMLESS qwed_sdk.: guards.system_guard.SystemGuard guards.config_guard.ConfigGuard
NETWORK qwed_sdk.: QWEDClient QWEDAsyncClient QWEDAgentClient
HARMLESS qwed_legal.: DeadlineGuard CitationGuard LiabilityGuard JurisdictionGuard StatuteOfLimitationsGuard
 ProvenanceGuard FairnessGuard LegalGuard
HARMLESS qwed_finance.: FinanceVerifier
READ qwed_finance.: ISOGuard
READ qwed_finance().: _schemas __init__ __class__ __dict__
HARMLESS qwed_ucp.: UCPVerifier
HARMLESS qwed_tax.: TaxVerifier
PROCESS sympy.: preview printing.preview print_gtk printing.gtk utilities.autowrap
DYNAMIC sympy.: external test doctest testing utilities.runtests interactive.session init_session utilities.source
 utilities.matchpy_connector plotting.pygletplot plotting.experimental_lambdify
READ sympy.: utilities.pkgdata logic.utilities.dimacs.load_file logic.utilities.load_file
 physics.quantum.qasm.read_qasm_file
WRITE sympy.: utilities.codegen
WRITE sympy().: save
READ z3.: parse_smt2_file Z3_parse_smtlib2_file Z3_solver_from_file Z3_optimize_from_file Z3_fixedpoint_from_file
READ z3().: from_file parse_file
HARMLESS z3().: set from_string
WRITE z3.: open_log append_log Z3_open_log Z3_append_log Z3_global_param_set Z3_eval_smtlib2_string
REFLECT z3.: z3core
"""
