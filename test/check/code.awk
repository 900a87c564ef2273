# SPDX-License-Identifier: MIT
# Only the code: no comments, no preprocessor, no blank lines.
{ code = strip($0) }
code !~ /^[ \t]*(#|$)/ { print code }
