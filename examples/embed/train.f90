! SPDX-License-Identifier: Apache-2.0
!
! A host program in Fortran that trains a plan on its own arrays. The plan is that of line.mlir:
!
!   mtc compile line.mlir -o line.mtp
!   gfortran -std=f2018 $PREFIX/include/mtrun.f90 train.f90 -lmtrun && ./a.out
program train
  use mtrun
  implicit none
  type(mtrun_plan) :: plan
  type(mtrun_session) :: session
  real, target :: x(2, 100), y(1, 100), kernel(1, 2), prediction(1, 1) ! the samples are the last axis
  integer :: i, epoch, last

  call plan%load("line.mtp")
  call session%create(plan)
  do i = 1, 100
    x(:, i) = [real(mod(i - 1, 10)) / 10, real((i - 1) / 10) / 10]
    y(1, i) = 2 * x(1, i) - 3 * x(2, i) + 1
  end do
  do epoch = 1, 200
    do i = 1, 100, 32 ! the last batch is short: 4 samples
      last = min(i + 31, 100)
      call session%train_step([mtrun_tensor(x(:, i:last)), mtrun_tensor(y(:, i:last))])
    end do
  end do
  call session%get_variable("kernel", mtrun_tensor(kernel))
  call session%predict([mtrun_tensor(x(:, 58:58)), mtrun_tensor(prediction)])
  print "(a, f8.6, 2(a, sp, f5.2), ss, a, f4.2)", "loss ", session%metric("loss"), ", y = ", kernel(1, 1), " a ", &
    kernel(1, 2), " b, at (0.7, 0.5): ", prediction
  call session%free()
  call plan%free()
end program train
