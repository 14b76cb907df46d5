"""Training of linear taggers, without torch: a conditional random field by stochastic gradient descent in C."""
