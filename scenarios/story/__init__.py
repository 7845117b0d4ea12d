"""Stories: scenarios told step by step, with the state expected after each."""
