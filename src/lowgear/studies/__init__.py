"""Studies: every table and figure of the paper, from training to table.

catalogue.py  the studies by name; variants, sweeps, sizes and distillation say which agents each compares
setup.py      what was asked for, and the groups of agents that become a table's rows
run_store.py  trains what is missing and evaluates it; runs that exist are not repeated
imitation.py  the same for imitators
rivals.py     other ways to a cheap controller, beside the asymmetric agents; rivals_time, _verdict, _figure judge them
plan.py       what is to be run, and about how long it takes; progress.py shows how far it is
rows.py       what a group of seeds scored and cost, beside the paper's figures
advise.py     which gears and periods are worth training, from a short sweep; advice.py plays and judges controllers
              that cut.py makes of others
table.py      rows as CSV, Markdown, LaTeX and on a terminal; figure.py draws those of a sweep
"""
